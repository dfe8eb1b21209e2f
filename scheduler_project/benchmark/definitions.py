"""Cron definitions: those that fire at one minute, and a crowd whose slots lie elsewhere."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString
from zoneinfo import ZoneInfo

import psycopg
from django.db import transaction

from jobs.models import CronDefinition
from jobs.tenants import tenant_ids
from scheduler_project.benchmark.client import TENANTS, payload
from scheduler_project.benchmark.work.tasks import NOOP

Connection = psycopg.Connection[Any]

BATCH = 5_000
ZONES = ("UTC", "Africa/Lagos", "America/Phoenix", "Asia/Kolkata", "Asia/Tokyo", "Australia/Brisbane")
"""Whose clocks never jump: while one shows a time twice, a daily rule does not fire at the second."""
APART = 2
"""Hours, at least, between the slot and others of the same rule."""

_CROWD: LiteralString = (
    "INSERT INTO jobs_crondefinition (name, tenant_id, expression, timezone, dst, job_type, payload, priority, enabled, "
    "misfire, misfire_grace, catchup_window, catchup_limit, overlap, source, next_slot, look_at, last_slot, revision, "
    "broken) SELECT 'crowd ' || n, %s, '0 0 * * *', 'UTC', 'cron', 'test.noop', '{}', 0, true, 'run_once', '1 min', "
    "'1 day', 100, 'allow_all', '', at, at, now(), 1, '' FROM (SELECT n, now() + interval '10 min' + "
    "random() * interval '1 day' AS at FROM generate_series(%s::int, %s) n) spread"
)
"""For a tenant, numbered from and to: they wait for slots of the coming day."""
_SWAP: LiteralString = (
    "ALTER TABLE jobs_crondefinition RENAME TO crowd_between; ALTER TABLE crowd RENAME TO jobs_crondefinition; "
    "ALTER TABLE crowd_between RENAME TO crowd"
)


def rules(slot: datetime, count: int) -> list[tuple[str, str]]:
    """Expression and zone of so many different rules, each of which fires at `slot`."""
    drawn = random.Random(1)  # noqa: S311
    found = dict.fromkeys(_rule(slot, drawn) for _ in range(count))
    while len(found) < count:
        found[_rule(slot, drawn)] = None
    return list(found)


def define(numbers: range, slot: datetime, different: int) -> Iterator[int]:
    """A definition for each number, with the payload of the client's jobs, that fires at `slot`; yields how many there
    are so far. Neighbours never share a rule."""
    texts = rules(slot, different)
    for start in range(numbers.start, numbers.stop, BATCH):
        made = range(start, min(start + BATCH, numbers.stop))
        CronDefinition.objects.bulk_create(_definition(n, *texts[n % different]) for n in made)
        yield made.stop - numbers.start


def rehearse(count: int) -> float:
    """Seconds that so many will take, judged by a batch that is not kept."""
    batch, begun = min(count, BATCH), time.perf_counter()
    slot = datetime.now(UTC) + timedelta(hours=1)
    with transaction.atomic():
        for _ in define(range(batch), slot, batch):
            pass
        transaction.set_rollback(True)
    return (time.perf_counter() - begun) * count / batch


def _definition(number: int, expression: str, zone: str) -> CronDefinition:
    slug = f"tenant {number % TENANTS}"
    return CronDefinition(
        name=f"fires {number}",
        tenant_id=tenant_ids([slug])[slug],
        expression=expression,
        timezone=zone,
        job_type=NOOP,
        payload=payload(number),
    )


def _rule(slot: datetime, drawn: random.Random) -> tuple[str, str]:
    zone = drawn.choice(ZONES)
    wall = slot.astimezone(ZoneInfo(zone))
    away = [hour for hour in range(24) if APART <= (hour - wall.hour) % 24 <= 24 - APART]
    day = weekday = "*"
    match drawn.randrange(3):
        case 0:
            day = _list(wall.day, drawn.sample(range(1, 32), 5))
        case 1:
            weekday = _list(wall.isoweekday() % 7, drawn.sample(range(7), 3))
    return f"{wall.minute} {_list(wall.hour, drawn.sample(away, 2))} {day} * {weekday}", zone


def _list(one: int, others: list[int]) -> str:
    return ",".join(map(str, sorted({one, *others})))


def crowd(connection: Connection, few: int, many: int) -> None:
    """So many definitions whose slots lie elsewhere, and so few in another table of the same kind."""
    tenant = tenant_ids(["crowd"])["crowd"]
    connection.execute(_CROWD, [tenant, 1, few])
    connection.execute("CREATE TABLE crowd (LIKE jobs_crondefinition INCLUDING ALL)")
    connection.execute("INSERT INTO crowd SELECT * FROM jobs_crondefinition")
    connection.execute(_CROWD, [tenant, few + 1, many])
    connection.execute("VACUUM ANALYZE crowd")
    connection.execute("VACUUM ANALYZE jobs_crondefinition")


def swap(connection: Connection) -> None:
    """Each takes the place of the other."""
    with connection.transaction():
        connection.execute(_SWAP)


def disperse(connection: Connection) -> None:
    connection.execute("DROP TABLE crowd")
    connection.execute("TRUNCATE jobs_crondefinition, jobs_cronrevision")
