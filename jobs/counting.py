"""Writing the rollups: minutes from what ended and came due in them, hours from minutes, and what is in the queues.

A minute is counted from the tables alone, so doing it again does no harm: whoever dies in the middle left nothing. It is
looked at twice: shortly after it has passed, and again when the transactions that were open then are over.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any, TypeVar

import psycopg

from jobs.histogram import BOUNDS, trimmed
from jobs.models.rollup import Kind, Step
from jobs.partitions import day_of, read_days
from jobs.sql import for_day, load

Connection = psycopg.Connection[Any]

MINUTE = timedelta(seconds=Step.MINUTE)
HOUR = timedelta(seconds=Step.HOUR)
NAMES_FORESEEN = 50
"""Of each kind so many names, the largest ones, are in the forecast."""

_KINDS = {7: Kind.ALL, 3: Kind.QUEUE, 5: Kind.TYPE, 6: Kind.TENANT}
"""By grouping(queue, job_type, tenant_id): a bit is set for what a row is not about."""
_COUNTED = {"completed": "completed", "failed": "failed", "cancelled": "cancelled", "error": "errors"}

Key = tuple[datetime, Kind, str]
T = TypeVar("T")


@dataclass
class _Sum:
    due: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    errors: int = 0
    ran_seconds: float = 0.0
    late: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    ran: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))


def count_minutes(connection: Connection, start: datetime, end: datetime) -> int:
    """Count [start, end), whole minutes, and keep it. In the caller's transaction. Returns the rows written."""
    sums: dict[Key, _Sum] = defaultdict(_Sum)
    values = {"start": start, "end": end, "bounds": [timedelta(seconds=bound) for bound in BOUNDS]}
    for day in _days(connection):
        for row in connection.execute(for_day("count_ended", day), values):
            _add_ended(sums, *row)
        if day_of(start) <= day <= day_of(end):
            for at, grouping, name, due in connection.execute(for_day("count_due", day), values):
                sums[at, _KINDS[grouping], name or ""].due += due
    _keep(connection, _named(connection, sums), start, end)
    return len(sums)


def late_minutes(connection: Connection, start: datetime, end: datetime) -> list[datetime]:
    """The minutes of [start, end) of which there is more by now than was counted."""
    found: dict[datetime, Counter[str]] = defaultdict(Counter)
    values = {"start": start, "end": end}
    for day in _days(connection):
        for at, due, ended, errors in connection.execute(for_day("count_again", day), values):
            found[at] += Counter(due=due, ended=ended, errors=errors)
    rows = connection.execute(
        "SELECT at, due, completed + failed + cancelled, errors FROM jobs_rollup "
        "WHERE step = 60 AND at >= %(start)s AND at < %(end)s AND kind = 'all'",
        values,
    ).fetchall()
    known = {at: Counter(due=due, ended=ended, errors=errors) for at, due, ended, errors in rows}
    return sorted(at for at, there in found.items() if there - known.get(at, Counter()))


def sum_hour(connection: Connection, start: datetime) -> int:
    """Keep the hour that begins at `start` as the sum of its minutes; returns the rows written."""
    return connection.execute(load("sum_hour"), {"start": start, "end": start + HOUR}).rowcount


def count_backlog(connection: Connection) -> int:
    """Count what is in the queues and keep it; returns the number of jobs there."""
    found = connection.execute(load("count_backlog")).fetchall()
    slugs = _slugs(connection, [name for grouping, name, *_ in found if _KINDS[grouping] == Kind.TENANT])
    kept: list[tuple[Kind, str, tuple[Any, ...]]] = []
    for grouping, name, *counts in found:
        kind = _KINDS[grouping]
        if kind != Kind.TENANT:
            kept.append((kind, name or "", tuple(counts)))
        elif name in slugs:  # one that was deleted by hand is left out
            kept.append((kind, slugs[name], tuple(counts)))
    columns = ("waiting", "oldest", "running", "retrying", "later", "parked")
    values = {column: [counts[n] for _, _, counts in kept] for n, column in enumerate(columns)}
    connection.execute(
        load("keep_backlog"),
        {"kinds": [kind for kind, _, _ in kept], "names": [name for _, name, _ in kept], **values},
    )
    return sum(counts[0] + sum(counts[2:]) for kind, _, counts in kept if kind == Kind.ALL)


def foresee(connection: Connection, start: datetime, end: datetime) -> int:
    """Count what comes due in [start, end), whole minutes, and keep it instead of the last forecast; returns the number
    of jobs."""
    due: Counter[Key] = Counter()
    values = {"start": start, "end": end}
    for day in _days(connection):
        if day_of(start) <= day <= day_of(end):
            for at, grouping, name, count in connection.execute(for_day("foresee_timers", day), values):
                due[at, _KINDS[grouping], name or ""] += count
    for at, grouping, name, count in connection.execute(load("foresee_entries"), values):
        due[at, _KINDS[grouping], name or ""] += count
    largest: dict[Kind, Counter[str]] = defaultdict(Counter)
    for (_, kind, name), count in due.items():
        largest[kind][name] += count
    shown = {(kind, name) for kind, names in largest.items() for name, _ in names.most_common(NAMES_FORESEEN)}
    named = _named(connection, {key: count for key, count in due.items() if key[1:] in shown})
    connection.execute("DELETE FROM jobs_forecast")
    connection.execute(
        "INSERT INTO jobs_forecast (at, kind, name, due) "
        "SELECT * FROM unnest(%s::timestamptz[], %s::text[], %s::text[], %s::int[])",
        [*_columns(named), list(named.values())],
    )
    return largest[Kind.ALL].total()


def _days(connection: Connection) -> list[Any]:
    """Every day: what ends now may have been due long ago, and a cancelled job may be due in a year."""
    tables = {"jobs_job", "jobs_timer", "jobs_outcome", "jobs_attempt"}
    return [day for day, leaves in read_days(connection).items() if tables <= leaves.attached]


def _add_ended(
    sums: dict[Key, _Sum],
    at: datetime,
    grouping: int,
    name: str | None,
    state: str,
    late: int | None,
    ran: int | None,
    jobs: int,
    seconds: float | None,
) -> None:
    """One row of count_ended."""
    found = sums[at, _KINDS[grouping], name or ""]
    setattr(found, _COUNTED[state], getattr(found, _COUNTED[state]) + jobs)
    found.ran_seconds += seconds or 0.0
    if late is not None:
        found.late[late] += jobs
    if ran is not None:
        found.ran[ran] += jobs


def _keep(connection: Connection, sums: Mapping[Key, _Sum], start: datetime, end: datetime) -> None:
    """Of two looks at a minute the larger counts stay."""
    rows = connection.execute(
        "SELECT at, kind, name, late, ran FROM jobs_rollup WHERE step = 60 AND at >= %s AND at < %s",
        [start, end],
    ).fetchall()
    before = {(at, Kind(kind), name): (late, ran) for at, kind, name, late, ran in rows}
    ats, kinds, names = _columns(sums)
    values: dict[str, Any] = {
        column: [getattr(found, column) for found in sums.values()]
        for column in ("due", "completed", "failed", "cancelled", "errors", "ran_seconds")
    }
    for n, column in enumerate(("late", "ran")):
        values[column] = [
            _array(getattr(found, column), before[key][n] if key in before else ())
            for key, found in sums.items()
        ]
    connection.execute(load("keep_rollups"), {"ats": ats, "kinds": kinds, "names": names, **values})


def _array(counts: Sequence[int], before: Sequence[int]) -> str:
    merged = [max(pair) for pair in zip_longest(counts, before, fillvalue=0)]
    return "{" + ",".join(map(str, trimmed(merged))) + "}"


def _named(connection: Connection, found: Mapping[Key, T]) -> dict[Key, T]:
    """With the slugs of tenants instead of their ids; a tenant that was deleted by hand is left out."""
    slugs = _slugs(connection, {name for _, kind, name in found if kind == Kind.TENANT})
    return {
        (at, kind, slugs[name] if kind == Kind.TENANT else name): value
        for (at, kind, name), value in found.items()
        if kind != Kind.TENANT or name in slugs
    }


def _slugs(connection: Connection, ids: Iterable[str]) -> dict[str, str]:
    rows = connection.execute(
        "SELECT id::text, slug FROM jobs_tenant WHERE id = ANY(%s::bigint[])", [[int(each) for each in ids]]
    )
    return dict(rows.fetchall())


def _columns(keys: Iterable[Key]) -> tuple[list[datetime], list[str], list[str]]:
    listed = list(keys)
    return [at for at, _, _ in listed], [kind.value for _, kind, _ in listed], [name for _, _, name in listed]
