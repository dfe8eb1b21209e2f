"""Insert many checked jobs by binary COPY: jobs, then the timers or entries by which they wait.

Rows are packed here: of 50,000 jobs most columns are the same few values, packed once, and timers while the server
writes the jobs. The format: "Binary Format" of
COPY in PostgreSQL's documentation.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, LiteralString

from jobs.arrays import microseconds
from jobs.newjob import Row, Terms

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
_PLAIN = 5 * _NULL
"""Of a job without cron, unique or concurrency key."""


def insert_many(
    cursor: Any, rows: Sequence[Row], until: datetime, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Insert jobs; those due up to `until` (now + look-ahead) go straight into their queues. In the
    transaction of the cursor. `meanwhile` is called again and again while the server writes. An entry's `run_at` is at least the time at which its insert began. The clock is read after
    the first write: a look that does not see this transaction among those that write must not be younger."""
    if not rows:
        return
    job, timer = _job(), _timer()
    timers: list[bytes] = []

    def jobs() -> Iterator[bytes]:
        for some in _chunks(rows):
            if sum(len(row.payload) for row in some) < _CHUNK_BYTES:
                yield b"".join([job(row) for row in some])
            else:
                yield from map(job, some)
            timers.append(b"".join([timer(row) for row in some if row.due_at > until]))

    _copy(cursor, _JOB, jobs(), meanwhile)
    if any(timers):
        _copy(cursor, _TIMER, timers, meanwhile)
    if soon := [row for row in rows if row.due_at <= until]:
        cursor.execute("SELECT clock_timestamp()")
        (begun,) = cursor.fetchone()
        entry = _entry(microseconds(begun))
        entries = (b"".join([entry(row) for row in some]) for some in _chunks(soon))
        _copy(cursor, _ENTRY, entries, meanwhile)


def _chunks(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for start in range(0, len(rows), _CHUNK):
        yield rows[start : start + _CHUNK]


def _copy(
    cursor: Any,
    statement: LiteralString,
    packed: Iterable[bytes],
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    with cursor.copy(statement) as copy:
        copy.write(_BEGIN)
        for some in packed:
            copy.write(some)
            meanwhile()
        copy.write(_END)


def _job() -> Callable[[Row], bytes]:
    shared = _Shared(lambda terms: b"".join((
        _int8(terms.tenant_id), _text(terms.job_type), _text(terms.queue), _int2(terms.priority),
        _text(terms.group), _int4(terms.max_attempts),
    )))  # fmt: skip

    def pack(row: Row) -> bytes:
        data = row.payload.encode()
        number = row.id.int
        head = _JOB_HEAD.pack(14, 16, number.to_bytes(16, "big"), 8, _due(number), len(data) + 1)
        plain = row.cron_id is None and row.unique_key is None and row.concurrency_key is None
        own = _PLAIN if plain else _own(row)
        return b"%b\x01%b%b%b" % (head, data, shared[row.terms], own)  # jsonb, version 1

    return pack


def _own(row: Row) -> bytes:
    slot = None if row.slot is None else microseconds(row.slot)
    return b"".join((
        _int8(row.cron_id), _int8(slot), _text(row.unique_key), _interval(row.unique_for), _text(row.concurrency_key)
    ))  # fmt: skip


def _timer() -> Callable[[Row], bytes]:
    shared = _Shared(lambda terms: b"".join((
        _int8(terms.tenant_id), _text(terms.queue), _text(terms.job_type), _int2(terms.priority),
        _int4(terms.max_attempts), _text(terms.group),
    )))  # fmt: skip

    def pack(row: Row) -> bytes:
        number = row.id.int
        head = _TIMER_HEAD.pack(9, 16, number.to_bytes(16, "big"), 8, _due(number))
        return (
            head + shared[row.terms] + (_NULL if row.concurrency_key is None else _text(row.concurrency_key))
        )

    return pack


def _entry(begun: int) -> Callable[[Row], bytes]:
    shared = _Shared(lambda terms: b"".join((
        _int8(terms.tenant_id), _text(terms.queue), _text(terms.job_type), _int2(terms.priority), _int4(0),
        _int4(terms.max_attempts), _int4(0), b"\0\0\0\1\0", _text(terms.group),
    )))  # fmt: skip

    def pack(row: Row) -> bytes:
        number = row.id.int
        due_at = _due(number)
        head = _ENTRY_HEAD.pack(14, 16, number.to_bytes(16, "big"), 8, due_at, 8, max(due_at, begun))
        parked = None if row.concurrency_key is None else "key"
        return head + shared[row.terms] + _text(row.concurrency_key) + _text(parked)

    return pack


class _Shared(dict[Terms, bytes]):
    """The columns that jobs have in common, packed once."""

    def __init__(self, pack: Callable[[Terms], bytes]) -> None:
        self._pack = pack

    def __missing__(self, terms: Terms) -> bytes:
        packed = self[terms] = self._pack(terms)
        return packed


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
