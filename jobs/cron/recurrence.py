"""What every kind of rule can say: a cron expression, an interval, one moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol

from jobs.errors import CronError, describe

SHORTEST = timedelta(seconds=1)
LONGEST = timedelta(days=3660)


class Fires(NamedTuple):
    fires: list[datetime]
    cut: bool
    """True when the range holds more than `limit`."""


class Recurrence(Protocol):
    """Aware datetimes in, UTC out; None where the rule, or the calendar, ends."""

    @property
    def warnings(self) -> tuple[str, ...]: ...

    @property
    def description(self) -> str: ...

    def next(self, after: datetime) -> datetime | None: ...

    def prev(self, at: datetime) -> datetime | None: ...

    def between(self, start: datetime, end: datetime, limit: int = 1000) -> Fires: ...


class Interval:
    """Every so often, counted in elapsed time from an anchor: it never looks at a wall clock."""

    warnings: tuple[str, ...] = ()

    def __init__(self, every: timedelta, anchor: datetime) -> None:
        given: Any = every
        if not isinstance(given, timedelta) or not SHORTEST <= every <= LONGEST:
            raise CronError(
                "every", f"{describe(every)} is no timedelta between {SHORTEST} and {LONGEST.days} days"
            )
        self.every, self.anchor = every, utc("anchor_at", anchor)

    @property
    def description(self) -> str:
        return f"every {self.every}, counted from {self.anchor:%Y-%m-%d %H:%M:%S UTC}"

    def next(self, after: datetime) -> datetime | None:
        return self._slot((utc("after", after) - self.anchor) // self.every + 1)

    def prev(self, at: datetime) -> datetime | None:
        return self._slot((utc("at", at) - self.anchor) // self.every)

    def between(self, start: datetime, end: datetime, limit: int = 1000) -> Fires:
        """The slots in (start, end], oldest first, at most `limit` of them."""
        first = (utc("start", start) - self.anchor) // self.every + 1
        last = (utc("end", end) - self.anchor) // self.every
        found = [self.anchor + n * self.every for n in range(first, min(last, first + limit - 1) + 1)]
        return Fires(found, cut=last - first >= limit)

    def _slot(self, number: int) -> datetime | None:
        try:
            return self.anchor + number * self.every
        except OverflowError:
            return None


class Once:
    """One moment."""

    warnings: tuple[str, ...] = ()

    def __init__(self, at: datetime) -> None:
        self.at = utc("run_at", at)

    @property
    def description(self) -> str:
        return f"once, at {self.at:%Y-%m-%d %H:%M:%S UTC}"

    def next(self, after: datetime) -> datetime | None:
        return self.at if self.at > after else None

    def prev(self, at: datetime) -> datetime | None:
        return self.at if self.at <= at else None

    def between(self, start: datetime, end: datetime, limit: int = 1000) -> Fires:
        """The moment, when it is in (start, end]."""
        return Fires([self.at] if start < self.at <= end else [], cut=False)


def utc(name: str, moment: datetime) -> datetime:
    """The same moment in UTC. CronError, in the field `name`, for a naive one."""
    if not isinstance(moment, datetime):
        raise CronError(name, f"must be a datetime, not {type(moment).__name__}")
    if moment.utcoffset() is None:
        raise CronError(name, "must be an aware datetime: this one has no time zone")
    return moment.astimezone(UTC)
