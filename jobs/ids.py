"""A job id carries its due time: a UUIDv7 (RFC 9562) whose 48-bit timestamp is `due_at` in milliseconds."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from uuid import UUID

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_DAY_MS = 86_400_000
_LAST_MS = (datetime.max.replace(tzinfo=UTC) - EPOCH) // _MS
_TAIL_BITS = 74  # 12 + 62: what version and variant leave free
_TAIL, _LOW_TAIL = (1 << _TAIL_BITS) - 1, (1 << 62) - 1


def ceil_ms(moment: datetime) -> datetime:
    """Round up to a whole millisecond in UTC: down would run a job early."""
    moment = moment.astimezone(UTC)
    return EPOCH + -((EPOCH - moment) // _MS) * _MS


def _compose(due_at: datetime, tail: int) -> UUID:
    ms = (due_at - EPOCH) // _MS
    if not 0 <= ms < 1 << 48:
        raise OverflowError(f"{due_at} does not fit a job id")
    return UUID(int=ms << 80 | 7 << 76 | (tail >> 62) << 64 | 2 << 62 | tail & (1 << 62) - 1)


def new_id(due_at: datetime) -> UUID:
    """A random id for a job due at `due_at` (whole milliseconds)."""
    return _compose(due_at, secrets.randbits(_TAIL_BITS))


def derived_id(due_at: datetime, *parts: object) -> UUID:
    """The one id of this due time and these parts: the same in every process, so two tickers collide."""
    digest = hashlib.sha256(b"\0".join(str(part).encode() for part in parts)).digest()
    return _compose(due_at, int.from_bytes(digest[:10]) >> 6)


class IdRun:
    """Random ids that rise within one call, so that a bulk insert fills index pages in order."""

    def __init__(self) -> None:
        self._tail = secrets.randbits(_TAIL_BITS)
        self._due_at, self._first = EPOCH, 0

    def next(self, due_at: datetime) -> UUID:
        self._tail = tail = (self._tail + 1) & _TAIL
        if due_at != self._due_at:
            self._due_at, self._first = due_at, _compose(due_at, 0).int
        return UUID(int=self._first | (tail >> 62) << 64 | tail & _LOW_TAIL)


def dues_of(job_ids: Iterable[UUID]) -> list[datetime]:
    """The due times inside these ids, each once, in order; without those beyond year 9999, which name no job."""
    return sorted({due_of(job_id) for job_id in job_ids if job_id.int >> 80 <= _LAST_MS})


def due_of(job_id: UUID | str) -> datetime:
    """The due time inside an id. ValueError for text that is no UUID, OverflowError beyond year 9999."""
    value = job_id if isinstance(job_id, UUID) else UUID(str(job_id))
    return EPOCH + (value.int >> 80) * _MS


def day_of_id(job_id: UUID) -> date:
    """The UTC day that a job id lies in."""
    return _day((job_id.int >> 80) // _DAY_MS)


@lru_cache(maxsize=4096)
def _day(number: int) -> date:
    return EPOCH.date() + timedelta(days=number)


def first_id(moment: datetime) -> UUID:
    """The least id of a job due at `moment` or later (whole milliseconds): a range of due times is a range of ids.
    None is of a time before 1970."""
    return UUID(int=max(0, (moment - EPOCH) // _MS) << 80)
