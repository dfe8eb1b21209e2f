"""What a caller asks for (`NewJob`) and what of it goes into the tables (`Row`), after every check."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from jobs import payload as payloads
from jobs.conf import MOST_ATTEMPTS, conf
from jobs.errors import InvalidJob, describe
from jobs.ids import IdRun, ceil_ms
from jobs.partitions import bounds, day_of
from jobs.registry import JobType, registry
from jobs.results import Key
from jobs.slugs import name_of, slug_of

PRIORITIES = range(-100, 101)
"""Larger first, as in django.tasks."""
CLAMP_DAYS = 2
"""No row is born into one of the two oldest kept days: they are about to expire."""


@dataclass(kw_only=True, slots=True)
class NewJob:
    """One job for `schedule_many`: the arguments of `Job.objects.schedule`."""

    job_type: str
    payload: Any = None
    due_at: datetime | None = None
    delay: timedelta | None = None
    tenant: str = "default"
    queue: str | None = None
    priority: int = 0
    group: str | None = None
    max_attempts: int | None = None
    unique_key: str | None = None
    unique_for: timedelta | None = None
    concurrency_key: str | None = None


@dataclass(slots=True, eq=False)
class Terms:
    """What jobs have in common: of 50,000 in one call these are a few."""

    tenant: str
    job_type: str
    queue: str
    priority: int
    group: str | None
    max_attempts: int
    tenant_id: int = 0
    """Known once the tenant has been looked up or made."""


@dataclass(slots=True)
class Row:
    """A checked job, ready to be inserted."""

    id: UUID
    due_at: datetime
    terms: Terms
    payload: str
    unique_key: str | None = None
    unique_for: timedelta | None = None
    concurrency_key: str | None = None
    cron_id: int | None = None
    slot: datetime | None = None

    @property
    def key(self) -> Key | None:
        return None if self.concurrency_key is None else (self.terms.tenant_id, self.concurrency_key)


class Frame:
    """What holds for all jobs of one call, at the database's time `now`."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.oldest = oldest_due(now)
        self.horizon = now + conf().max_horizon
        self.payload_bytes = conf().payload_bytes
        self._checked: dict[Any, tuple[Terms, JobType | None]] = {}

    def check(self, new: NewJob) -> tuple[Terms, JobType | None]:
        """What this job has in common with others, and its type if it is known here. InvalidJob."""
        name = (new.job_type, new.tenant, new.queue, new.priority, new.group, new.max_attempts)
        try:
            found = self._checked.get(name)
        except TypeError:  # something that is no text
            found = None
        if found and type(new.priority) is int and type(new.max_attempts) in _WHOLE:  # True and 1.0 equal 1
            return found
        checked = _terms(new)
        self._checked[name] = checked
        return checked


_WHOLE = (int, type(None))


def prepare(new: NewJob, frame: Frame, ids: IdRun) -> Row:
    """Check every field; InvalidJob names the one that is wrong."""
    terms, known = frame.check(new)
    if new.unique_key is not None or new.unique_for is not None:
        _unique(new)
    due_at = _due(new, frame)
    data = payloads.dump(new.payload, known.payload_type) if known and known.payload_type else new.payload
    return Row(
        ids.next(due_at),
        due_at,
        terms,
        payloads.encode(data, limit=frame.payload_bytes),
        new.unique_key,
        new.unique_for,
        None if new.concurrency_key is None else _name("concurrency_key", new.concurrency_key, 200),
    )


def _terms(new: NewJob) -> tuple[Terms, JobType | None]:
    known = registry.require(_name("job_type", new.job_type))
    most = known.max_attempts if known else conf().max_attempts
    terms = Terms(
        _tenant(new.tenant),
        new.job_type,
        _name("queue", new.queue if new.queue is not None else known.queue if known else new.job_type),
        _whole("priority", new.priority, PRIORITIES),
        None if new.group is None else _name("group", new.group),
        most
        if new.max_attempts is None
        else _whole("max_attempts", new.max_attempts, range(1, MOST_ATTEMPTS + 1)),
    )
    return terms, known


def clamp(due_at: datetime, now: datetime) -> datetime:
    """A due time in the long past means now, but its row must not be born into a day that is about to expire."""
    return max(due_at, oldest_due(now))


def oldest_due(now: datetime) -> datetime:
    return bounds(day_of(now - conf().retention) + timedelta(days=CLAMP_DAYS))[0]


def _due(new: NewJob, frame: Frame) -> datetime:
    due: Any = new.due_at
    if (
        new.delay is None and type(due) is datetime and due.tzinfo is UTC and not due.microsecond % 1000
        and frame.oldest <= due <= frame.horizon and new.unique_for is None
    ):  # fmt: skip
        return due
    now = frame.now
    if new.due_at is not None and new.delay is not None:
        raise InvalidJob("delay", "give due_at or delay, not both")
    due_at: Any = (
        _after(new.delay, now) if new.delay is not None else now if new.due_at is None else new.due_at
    )
    oldest = frame.oldest
    if new.unique_for is not None:  # who holds the key is to be there for as long as it is held
        oldest = max(oldest, now - conf().retention + new.unique_for)
    return ceil_ms(max(moment("due_at", due_at, frame.horizon), oldest))


def moment(field: str, value: Any, horizon: datetime) -> datetime:
    """This time in UTC, rounded up to the millisecond. InvalidJob when it is none, is naive or lies beyond the horizon."""
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise InvalidJob(
            field, f"{describe(value)} is not an aware datetime; say which zone it is in (timezone.now())"
        )
    try:
        found = ceil_ms(value)
    except OverflowError as error:
        raise InvalidJob(field, f"{value} cannot be expressed in UTC") from error
    if found > horizon:
        raise InvalidJob(field, f"{found} is beyond the horizon {horizon} (SCHEDULER['max_horizon'])")
    return found


def _after(delay: Any, now: datetime) -> datetime:
    if not isinstance(delay, timedelta):
        raise InvalidJob("delay", f"{describe(delay)} is not a timedelta")
    try:
        return now + delay
    except OverflowError as error:
        raise InvalidJob("delay", f"{delay} leads out of the calendar") from error


def _tenant(value: Any) -> str:
    try:
        return slug_of(value)
    except ValueError as error:
        raise InvalidJob("tenant", str(error)) from None


def _name(field: str, value: Any, limit: int = 100) -> str:
    try:
        return name_of(value, limit)
    except ValueError as error:
        raise InvalidJob(field, str(error)) from None


def _whole(field: str, value: Any, allowed: range) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in allowed:
        raise InvalidJob(field, f"{describe(value)} is no whole number from {allowed[0]} to {allowed[-1]}")
    return value


def _unique(new: NewJob) -> None:
    if new.unique_key is not None:
        _name("unique_key", new.unique_key, 200)
    if new.unique_for is None:
        return
    if new.unique_key is None:
        raise InvalidJob("unique_for", "needs a unique_key")
    lifetime: Any = new.unique_for
    if not isinstance(lifetime, timedelta) or not timedelta() < lifetime <= conf().retention:
        raise InvalidJob(
            "unique_for", f"must be a timedelta above 0 and up to the retention, {conf().retention}"
        )
