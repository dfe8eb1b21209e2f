"""Insert many checked jobs by binary COPY: jobs, then the timers or entries by which they wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, LiteralString

from psycopg.types.json import Jsonb

from jobs.newjob import Row

_JOB: LiteralString = (
    'COPY jobs_job (id, due_at, tenant_id, job_type, queue, priority, payload, "group", max_attempts, cron_id, '
    "slot, unique_key, unique_for) FROM STDIN (FORMAT binary)"
)
_JOB_TYPES = [
    "uuid",
    "timestamptz",
    "int8",
    "text",
    "text",
    "int2",
    "jsonb",
    "text",
    "int4",
    "int8",
    "timestamptz",
    "text",
    "interval",
]
_TIMER: LiteralString = (
    'COPY jobs_timer (job_id, due_at, tenant_id, queue, job_type, priority, max_attempts, "group") '
    "FROM STDIN (FORMAT binary)"
)
_TIMER_TYPES = ["uuid", "timestamptz", "int8", "text", "text", "int2", "int4", "text"]
_ENTRY: LiteralString = (
    "COPY jobs_queueentry (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, max_attempts, "
    'crashes, cancel_requested, "group") FROM STDIN (FORMAT binary)'
)
_ENTRY_TYPES = [
    "uuid", "timestamptz", "timestamptz", "int8", "text", "text", "int2", "int4", "int4", "int4", "bool", "text",
]  # fmt: skip


def insert_many(cursor: Any, rows: Sequence[Row], until: datetime) -> None:
    """Insert jobs; those due up to `until` (now + look-ahead) go straight into their queues. In the
    transaction of the cursor. An entry's `run_at` is at least the time at which the insert began."""
    if not rows:
        return
    cursor.execute("SELECT clock_timestamp()")
    (begun,) = cursor.fetchone()
    _copy(cursor, _JOB, _JOB_TYPES, (_job(row) for row in rows))
    later = [row for row in rows if row.due_at > until]
    if later:
        _copy(cursor, _TIMER, _TIMER_TYPES, (_timer(row) for row in later))
    if len(later) < len(rows):
        soon = (_entry(row, begun) for row in rows if row.due_at <= until)
        _copy(cursor, _ENTRY, _ENTRY_TYPES, soon)


def _copy(cursor: Any, statement: LiteralString, types: list[str], values: Iterable[tuple[Any, ...]]) -> None:
    with cursor.copy(statement) as copy:
        copy.set_types(types)
        for value in values:
            copy.write_row(value)


def _job(row: Row) -> tuple[Any, ...]:
    return (
        row.id, row.due_at, row.tenant_id, row.job_type, row.queue, row.priority,
        Jsonb(row.payload, dumps=str.encode), row.group, row.max_attempts, row.cron_id, row.slot, row.unique_key,
        row.unique_for,
    )  # fmt: skip


def _timer(row: Row) -> tuple[Any, ...]:
    return (
        row.id, row.due_at, row.tenant_id, row.queue, row.job_type, row.priority, row.max_attempts, row.group,
    )  # fmt: skip


def _entry(row: Row, begun: datetime) -> tuple[Any, ...]:
    return (
        row.id, row.due_at, max(row.due_at, begun), row.tenant_id, row.queue, row.job_type, row.priority,
        0, row.max_attempts, 0, False, row.group,
    )  # fmt: skip
