"""Insert many checked jobs by binary COPY: jobs, then the timers or entries by which they wait.

Rows are packed here: of 50,000 jobs most columns are the same few values, packed once. The format: "Binary Format" of
COPY in PostgreSQL's documentation.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, LiteralString

from jobs.arrays import microseconds
from jobs.newjob import Row

_JOB: LiteralString = (
    'COPY jobs_job (id, due_at, payload, tenant_id, job_type, queue, priority, "group", max_attempts, cron_id, '
    "slot, unique_key, unique_for, concurrency_key) FROM STDIN (FORMAT binary)"
)
_TIMER: LiteralString = (
    'COPY jobs_timer (job_id, due_at, tenant_id, queue, job_type, priority, max_attempts, "group", '
    "concurrency_key) FROM STDIN (FORMAT binary)"
)
_ENTRY: LiteralString = (
    "COPY jobs_queueentry (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, max_attempts, "
    'crashes, cancel_requested, "group", concurrency_key, parked) FROM STDIN (FORMAT binary)'
)
_BEGIN = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_END = struct.pack(">h", -1)
_CHUNK, _CHUNK_BYTES = 500, 2**20
"""Rows handed over at once, or fewer when they are so large together."""

_JOB_HEAD = struct.Struct(">hi16siqi")
_TIMER_HEAD = struct.Struct(">hi16siq")
_ENTRY_HEAD = struct.Struct(">hi16siqiq")
_SINCE_1970 = 946_684_800_000_000
_NULL = struct.pack(">i", -1)


def insert_many(cursor: Any, rows: Sequence[Row], until: datetime) -> None:
    """Insert jobs; those due up to `until` (now + look-ahead) go straight into their queues. In the
    transaction of the cursor. An entry's `run_at` is at least the time at which its insert began. The clock is read after
    the first write: a look that does not see this transaction among those that write must not be younger."""
    if not rows:
        return
    _copy(cursor, _JOB, rows, _job())
    later = [row for row in rows if row.due_at > until]
    if later:
        _copy(cursor, _TIMER, later, _timer())
    if len(later) < len(rows):
        cursor.execute("SELECT clock_timestamp()")
        (begun,) = cursor.fetchone()
        _copy(cursor, _ENTRY, [row for row in rows if row.due_at <= until], _entry(microseconds(begun)))


def _copy(cursor: Any, statement: LiteralString, rows: Sequence[Row], pack: Callable[[Row], bytes]) -> None:
    with cursor.copy(statement) as copy:
        copy.write(_BEGIN)
        for start in range(0, len(rows), _CHUNK):
            some = rows[start : start + _CHUNK]
            if sum(len(row.payload) for row in some) < _CHUNK_BYTES:
                copy.write(b"".join([pack(row) for row in some]))
            else:
                for row in some:
                    copy.write(pack(row))
        copy.write(_END)


def _job() -> Callable[[Row], bytes]:
    tails: dict[Any, bytes] = {}

    def pack(row: Row) -> bytes:
        name = (
            row.tenant_id, row.job_type, row.queue, row.priority, row.group, row.max_attempts, row.cron_id, row.slot,
            row.unique_key, row.unique_for, row.concurrency_key,
        )  # fmt: skip
        if (tail := tails.get(name)) is None:
            tail = b"".join((
                _int8(row.tenant_id), _text(row.job_type), _text(row.queue), _int2(row.priority), _text(row.group),
                _int4(row.max_attempts), _int8(row.cron_id),
                _int8(None if row.slot is None else microseconds(row.slot)), _text(row.unique_key), _interval(row.unique_for),
                _text(row.concurrency_key),
            ))  # fmt: skip
            if row.unique_key is None and row.concurrency_key is None:
                tails[name] = tail
        data = row.payload.encode()
        number = row.id.int
        head = _JOB_HEAD.pack(14, 16, number.to_bytes(16, "big"), 8, _due(number), len(data) + 1)
        return head + b"\x01" + data + tail  # jsonb, version 1

    return pack


def _timer() -> Callable[[Row], bytes]:
    tails: dict[Any, bytes] = {}

    def pack(row: Row) -> bytes:
        name = (
            row.tenant_id, row.queue, row.job_type, row.priority, row.max_attempts, row.group, row.concurrency_key,
        )  # fmt: skip
        if (tail := tails.get(name)) is None:
            tail = b"".join((
                _int8(row.tenant_id), _text(row.queue), _text(row.job_type), _int2(row.priority),
                _int4(row.max_attempts), _text(row.group), _text(row.concurrency_key),
            ))  # fmt: skip
            if row.concurrency_key is None:
                tails[name] = tail
        number = row.id.int
        return _TIMER_HEAD.pack(9, 16, number.to_bytes(16, "big"), 8, _due(number)) + tail

    return pack


def _entry(begun: int) -> Callable[[Row], bytes]:
    tails: dict[Any, bytes] = {}

    def pack(row: Row) -> bytes:
        name = (
            row.tenant_id, row.queue, row.job_type, row.priority, row.max_attempts, row.group, row.concurrency_key,
        )  # fmt: skip
        if (tail := tails.get(name)) is None:
            tail = b"".join((
                _int8(row.tenant_id), _text(row.queue), _text(row.job_type), _int2(row.priority), _int4(0),
                _int4(row.max_attempts), _int4(0), b"\0\0\0\1\0", _text(row.group),
                _text(row.concurrency_key), _text(None if row.concurrency_key is None else "key"),
            ))  # fmt: skip
            if row.concurrency_key is None:
                tails[name] = tail
        number = row.id.int
        due_at = _due(number)
        return _ENTRY_HEAD.pack(14, 16, number.to_bytes(16, "big"), 8, due_at, 8, max(due_at, begun)) + tail

    return pack


def _due(job_id: int) -> int:
    """The due time inside an id, in microseconds since 2000-01-01."""
    return (job_id >> 80) * 1000 - _SINCE_1970


def _int2(value: int) -> bytes:
    return struct.pack(">ih", 2, value)


def _int4(value: int) -> bytes:
    return struct.pack(">ii", 4, value)


def _int8(value: int | None) -> bytes:
    return _NULL if value is None else struct.pack(">iq", 8, value)


def _text(value: str | None) -> bytes:
    if value is None:
        return _NULL
    data = value.encode()
    return struct.pack(">i", len(data)) + data


def _interval(value: timedelta | None) -> bytes:
    if value is None:
        return _NULL
    return struct.pack(">iqii", 16, value.seconds * 1_000_000 + value.microseconds, value.days, 0)
