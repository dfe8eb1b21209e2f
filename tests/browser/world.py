"""An installation with a life: jobs in every state, numbers of the last hours, cron, limits, holds, what was done."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any

from django.contrib.auth.models import User

from dispatch.rollup import Rollups
from jobs import leases, operations, operator, rollups
from jobs.expanding import tick_id
from jobs.histogram import Histogram
from jobs.models import (
    CronDefinition,
    CronTick,
    Hold,
    Job,
    Kind,
    Operation,
    ProcessKind,
    Queue,
    Rollup,
    RollupProgress,
    Tenant,
)
from jobs.models.tick import TickOutcome
from jobs.newjob import NewJob
from jobs.registry import registry
from jobs.results import Failed
from jobs.states import JobState
from jobs.text import ErrorText
from tests.browser.shop import QUEUES, TYPES
from tests.factories import Connection, claim, finish, job_in, process, schedule

MINUTE = timedelta(minutes=1)
TENANTS = ("acme", "globex", "initech", "umbrella", "hooli")
TRACE = (
    'Traceback (most recent call last):\n  File "billing/tasks.py", line 41, in charge\n    gateway.charge(card)\n'
    "ConnectionError: gateway said 503 to order 81723\n"
)


@dataclass
class World:
    by_state: dict[str, Any] = field(default_factory=dict)
    cancelled: Any = None
    definition: Any = None
    group: str = "spring-mailing"


def build(connection: Connection, user: User, *, rich: bool = True) -> World:
    """As an operator would find it at noon of an ordinary day; with `rich`, with numbers to draw."""
    world = World()
    now = datetime.now(UTC)
    for slug in TENANTS:
        Tenant.objects.get_or_create(slug=slug)
    Tenant.objects.filter(slug="acme").update(max_running=20)
    Tenant.objects.filter(slug="umbrella").update(max_running=0)
    Queue.objects.create(name="reports", max_running=40)
    _fleet(connection)
    _failures(connection)
    for state in sorted(
        JobState, key=lambda each: each is JobState.QUEUED
    ):  # the claims of others would take it
        world.by_state[state.value] = job_in(
            state, connection, "reports.render",
            payload={"report": {"customer": 81723, "format": "pdf"}, "pages": [1, 2, 3, 4, 5], "api_token": "tok_x"},
            tenant="acme", group=world.group,
        )  # fmt: skip
    world.cancelled = schedule("mail.send", tenant="globex", group=world.group, delay=timedelta(hours=3))
    operator.act(user, "cancel", [world.cancelled.pk], "the mailing was recalled")
    _waiting(now)
    world.definition = _cron(now)
    if rich:
        _numbers(connection, now)
    return world


def _fleet(connection: Connection) -> None:
    register = partial(leases.register, lease=timedelta(hours=1))
    register(connection, ProcessKind.DISPATCHER, pid=4101)
    for number in range(2):
        head = register(
            connection, ProcessKind.SUPERVISOR, pid=4200 + number, queues=list(QUEUES), types=registry.names()
        )
        for child in range(2):
            register(
                connection, ProcessKind.WORKER, pid=4210 + 10 * number + child, parent_id=head,
                queues=list(QUEUES), types=registry.names(),
            )  # fmt: skip
    gone = register(connection, ProcessKind.WORKER, pid=3999, queues=["mail"], types=["mail.send"])
    leases.end(connection, [gone])


def _failures(connection: Connection) -> None:
    worker = process(connection)
    texts = [
        ErrorText("ConnectionError", f"gateway said 503 to order {81700 + n}", TRACE, "c0ffee0000000001")
        for n in range(7)
    ] + [ErrorText("ValueError", f"no such plan: 'gold-{n}'", TRACE, "c0ffee0000000002") for n in range(3)]
    for number, text in enumerate(texts):
        job = schedule("billing.charge", {"order": 81700 + number}, tenant=TENANTS[number % 3])
        finish(connection, claim(connection, job, worker), Failed(text, timedelta(), final=True))


def _waiting(now: datetime) -> None:
    chance = Random(7)
    Job.objects.schedule_many(
        [
            NewJob(
                job_type=chance.choice(("mail.send", "mail.send", "reports.render")),
                tenant=chance.choice(TENANTS),
                due_at=now + timedelta(seconds=chance.randrange(60, 3500)),
            )
            for _ in range(120)
        ]
    )


def _cron(now: datetime) -> CronDefinition:
    tenant = Tenant.objects.get(slug="acme")
    nightly = CronDefinition.objects.create(
        name="nightly invoices",
        tenant=tenant,
        expression="30 2 * * *",
        timezone="Europe/Berlin",
        job_type="billing.charge",
    )
    CronDefinition.objects.create(
        name="heartbeat", tenant=tenant, expression="*/5 * * * *", job_type="search.index", overlap="skip"
    )
    paused = CronDefinition.objects.create(
        name="quarterly report",
        tenant=tenant,
        expression="0 6 1 */3 *",
        timezone="America/New_York",
        job_type="reports.render",
    )
    paused.pause("the figures are being audited")
    for days, (outcome, reason) in enumerate(
        [(TickOutcome.FIRED, ""), (TickOutcome.LATE, "dispatcher was away for 4 minutes")]
    ):
        slot = (now - timedelta(days=days)).replace(hour=1, minute=30, second=0, microsecond=0)
        if slot > now:
            continue
        CronTick.objects.create(
            id=tick_id(nightly.pk, 1, slot),
            slot=slot,
            definition_id=nightly.pk,
            revision=1,
            outcome=outcome,
            reason=reason,
        )
    return nightly


def _numbers(connection: Connection, now: datetime) -> None:
    """The rollups of the last hours, as their loop would have written them, and one pass of the loop itself."""
    chance = Random(11)
    end_ = rollups.floor(now, 60)
    rows = []
    for minutes in range(1, 62):
        at = end_ - minutes * MINUTE
        rows.append(_row(Kind.ALL, "", at, chance, 400))
        rows += [_row(Kind.QUEUE, name, at, chance, 100) for name in QUEUES]
        rows += [_row(Kind.TYPE, name, at, chance, 100) for name in TYPES]
        rows += [_row(Kind.TENANT, name, at, chance, 80) for name in TENANTS]
    Rollup.objects.bulk_create(rows)
    Rollups().run_once(connection, now)
    RollupProgress.objects.update(first=end_, second=end_)


def _row(kind: Kind, name: str, at: datetime, chance: Random, size: int) -> Rollup:
    due = size + chance.randrange(size // 2) + (3 * size if at.minute == 0 else 0)
    failed = chance.randrange(1 + size // 100) if chance.random() < 0.4 else 0
    late = [min(chance.expovariate(8) + (2.0 if at.minute in (0, 1) else 0.0), 40.0) for _ in range(20)]
    return Rollup(
        kind=kind, step=60, name=name, at=at, due=due, completed=due - failed, failed=failed, errors=failed * 3,
        late=list(Histogram.of(late).counts), ran=list(Histogram.of([chance.expovariate(3) for _ in range(20)]).counts),
        ran_seconds=due / 3,
    )  # fmt: skip


def hold(scope: str, key: str, **more: Any) -> Hold:
    return Hold.objects.create(scope=scope, key=key, by="maria", reason="gateway is down", **more)


def under_way(user: User) -> Operation:
    """A bulk operation that has done its first steps."""
    soon = [
        NewJob(
            job_type="mail.send", tenant="globex", group="autumn-mailing", delay=timedelta(hours=2, seconds=n)
        )
        for n in range(1_203)
    ]
    Job.objects.schedule_many(soon)
    made = operations.submit(
        user, "cancel", "group:autumn-mailing due:now..+1d", "recalled by marketing", rate=500
    )
    operations.run_chunk(operation_id=made.pk)
    return made
