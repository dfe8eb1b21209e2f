"""Check the invariant: every job is in exactly one place, no satellite is without its job, no leaf is missing,
and concurrency keys are kept.

An hour of due times per statement, so that no long snapshot holds up vacuum; only what fails in two looks is reported,
because days are made, taken apart and attached again meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connections

from jobs import clock
from jobs.ids import dues_of, first_id
from jobs.partitions import PARENTS, bounds, day_of, maintenance, read_days
from jobs.partitions.expire import expired_before
from jobs.sql import load

HOUR = timedelta(hours=1)
OF_A_SPAN, MOST = 1_000, 10_000
"""Breaches that are told of one span, and of all: a leaf that was dropped by hand has millions."""
KEYS = 10_000
"""Unique keys of one look."""


@dataclass
class Findings:
    breaches: list[str] = field(default_factory=list)
    """One sentence each, naming the job's id or the day."""
    counts: Counter[str] = field(default_factory=Counter)
    """Jobs by state."""

    @property
    def clean(self) -> bool:
        return not self.breaches


def check(using: str = "default", *, span: timedelta = HOUR) -> Findings:
    """`span`: how much of due time one statement looks at."""
    findings = Findings()
    now = clock.now(using)
    days, broken = _days(using, now)
    if broken:
        broken &= _days(using, now)[1]
    findings.breaches += sorted(broken)
    with connections[using].cursor() as cursor:
        for start, end in _spans(days | _entry_days(cursor), span):
            values: dict[str, Any] = {
                "start": start,
                "end": end,
                "first": first_id(start),
                "last": first_id(end),
            }
            _look(cursor, values, findings)
            cursor.execute(load("state_counts"), values)
            for state, count in cursor.fetchall():
                findings.counts[state] += count
        if failed_keys := _keys(cursor):
            failed_keys &= _keys(cursor)
        if failed_limits := _key_limits(cursor):
            failed_limits &= _key_limits(cursor)
        findings.breaches += [f"job {job_id} {what}" for job_id, what in sorted(failed_limits)]
        findings.breaches += [
            f"job {job_id} has ended but holds a unique key" for job_id in sorted(failed_keys)
        ]
    findings.counts = +findings.counts
    return findings


def _look(cursor: Any, values: dict[str, Any], findings: Findings) -> None:
    if len(findings.breaches) >= MOST:
        return
    if failed := _breaches(cursor, values):
        failed &= _breaches(cursor, values)
    findings.breaches += [f"job {job_id} {what}" for job_id, what in sorted(failed)]
    if len(failed) == OF_A_SPAN:
        findings.breaches.append(f"and more of those due from {values['start']} to {values['end']}")
    if len(findings.breaches) >= MOST:
        findings.breaches.append(f"what is due from {values['end']} on was not looked at")


def _days(using: str, now: datetime) -> tuple[set[date], set[str]]:
    """Days to look into, and what is missing. An expired day is being taken apart: it is passed over."""
    with maintenance(using) as connection:
        days = read_days(connection)
    broken = set()
    for day, leaves in days.items():
        if not leaves.complete and bounds(day)[1] > expired_before(now):
            missing = ", ".join(sorted(set(PARENTS) - leaves.attached))
            broken.add(f"day {day} lacks its leaves of {missing}")
    if day_of(now) not in days:
        broken.add(f"day {day_of(now)}, today, has no leaves")
    return {day for day, leaves in days.items() if leaves.complete}, broken


def _entry_days(cursor: Any) -> set[date]:
    """Days of queue entries, whose leaves may have been dropped by hand."""
    cursor.execute("SELECT DISTINCT (due_at AT TIME ZONE 'UTC')::date FROM jobs_queueentry")
    return {day for (day,) in cursor.fetchall()}


def _spans(days: set[date], span: timedelta) -> Iterator[tuple[datetime, datetime]]:
    for day in sorted(days):
        start, end = bounds(day)
        while start < end:
            yield start, min(end, start + span)
            start += span


def _breaches(cursor: Any, values: dict[str, Any]) -> set[tuple[UUID, str]]:
    cursor.execute(load("breaches"), {**values, "most": OF_A_SPAN})
    return set(cursor.fetchall())


def _key_limits(cursor: Any) -> set[tuple[UUID, str]]:
    """Concurrency keys with more jobs than they allow, or with room for one that waits."""
    cursor.execute(load("key_breaches"))
    return set(cursor.fetchall())


def _keys(cursor: Any) -> set[UUID]:
    """Jobs that hold a key until they end, and have ended."""
    found, last = set[UUID](), 0
    while True:
        cursor.execute(
            "SELECT id, job_id FROM jobs_uniquekey WHERE id > %s AND expires_at IS NULL ORDER BY id LIMIT %s",
            [last, KEYS],
        )
        rows = cursor.fetchall()
        if not rows:
            return found
        last = rows[-1][0]
        found |= _without(cursor, {job_id for _, job_id in rows})


def _without(cursor: Any, held: set[UUID]) -> set[UUID]:
    """Those that have neither timer nor entry; timers first, as they become entries."""
    cursor.execute(
        "SELECT job_id FROM jobs_timer WHERE job_id = ANY(%s) AND due_at = ANY(%s)",
        [list(held), dues_of(held)],
    )
    left = held - {job_id for (job_id,) in cursor.fetchall()}
    cursor.execute("SELECT job_id FROM jobs_queueentry WHERE job_id = ANY(%s)", [list(left)])
    return left - {job_id for (job_id,) in cursor.fetchall()}
