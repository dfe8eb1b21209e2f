"""A second opinion on when cron definitions fire, for `checkcron`: minute after minute on zoneinfo.

It shares nothing with jobs.cron, neither grammar nor walk, and is as plain as can be: what both get wrong in the same way
would go unnoticed. It reads only what was accepted; anything else is a ValueError.
"""

from __future__ import annotations

from bisect import bisect_right
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = 24 * 60
ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


@dataclass(frozen=True)
class Sets:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int] | None
    """None: any day."""
    last_day: bool
    months: frozenset[int]
    weekdays: frozenset[int] | None
    nth: frozenset[tuple[int, int]]
    """(weekday, which of the month); 0 is the last."""

    def holds_on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        if self.days is None and self.weekdays is None:
            return True
        length, weekday = monthrange(day.year, day.month)[1], day.isoweekday() % 7
        by_day = self.days is not None and (day.day in self.days or (self.last_day and day.day == length))
        which = {(weekday, (day.day + 6) // 7)}
        if day.day + 7 > length:
            which.add((weekday, 0))
        by_weekday = self.weekdays is not None and (weekday in self.weekdays or bool(which & self.nth))
        return by_day or by_weekday


def expected(
    *,
    expression: str,
    tz: str,
    dst: str,
    every: timedelta | None,
    anchor: datetime,
    run_at: datetime | None,
    start: datetime,
    end: datetime,
) -> list[datetime]:
    """The slots in (start, end]."""
    if run_at is not None:
        return [run_at] if start < run_at <= end else []
    if every is not None:
        slot, found = anchor + ((start - anchor) // every) * every, []
        while slot <= end:
            if slot > start:
                found.append(slot)
            slot += every
        return found
    found = []
    for number in range((start - EPOCH).days, (end - EPOCH).days + 1):
        day = _day(expression, tz, dst, number)
        found += day[bisect_right(day, start) : bisect_right(day, end)]
    return found


@lru_cache(maxsize=4096)
def _day(expression: str, tz: str, dst: str, number: int) -> list[datetime]:
    """Of one UTC day, days counted from 1970."""
    return [EPOCH + minute * MINUTE for minute in _walk(read(expression), tz, dst, number * DAY)]


def _walk(sets: Sets, tz: str, dst: str, first: int) -> list[int]:
    """Every minute of the day that begins at minute `first`; from two days before, to know what the clock has shown.
    An hour in which the clock does not jump and that cannot match is passed as a whole."""
    literal = dst == "literal" or (dst == "cron" and len(sets.hours) == 24)
    found, reached = list[int](), -1
    for hour in range(first - 2 * DAY, first + DAY, 60):
        before, after = _offset(tz, hour), _offset(tz, hour + 60)
        if (
            before == after
            and (literal or hour + before == reached + 1)
            and not _may_match(sets, hour + before)
        ):
            reached = max(reached, hour + before + 59)
            continue
        for minute in range(hour, hour + 60):
            wall = minute + (before if before == after else _offset(tz, minute))
            if literal or wall == reached + 1 or (dst == "skip" and wall > reached):
                hit = _matches(sets, wall)
            else:  # what was skipped counts now, what was shown before does not
                hit = reached > 0 and any(_matches(sets, each) for each in range(reached + 1, wall + 1))
            reached = max(reached, wall)
            if hit and minute >= first:
                found.append(minute)
    return found


def _may_match(sets: Sets, wall: int) -> bool:
    return wall % DAY // 60 in sets.hours or (wall + 59) % DAY // 60 in sets.hours


def _matches(sets: Sets, wall: int) -> bool:
    if wall % 60 not in sets.minutes or wall % DAY // 60 not in sets.hours:
        return False
    return sets.holds_on(date(1970, 1, 1) + timedelta(days=wall // DAY))


@lru_cache(maxsize=65536)
def _offset(tz: str, minute: int) -> int:
    """Minutes east of UTC at this minute since 1970."""
    shift = (EPOCH + minute * MINUTE).astimezone(ZoneInfo(tz)).utcoffset()
    return (shift or timedelta()) // MINUTE


@lru_cache(maxsize=4096)
def read(expression: str) -> Sets:
    minute, hour, day, month, weekday = ALIASES.get(expression.strip().lower(), expression.lower()).split()
    days = [item for item in day.split(",") if item != "l"]
    plain = [item for item in weekday.split(",") if "#" not in item and not item.endswith("l")]
    special = [item for item in weekday.split(",") if "#" in item or item.endswith("l")]
    return Sets(
        minutes=_values(minute.split(","), 0, 59),
        hours=_values(hour.split(","), 0, 23),
        days=None if day in "*?" else _values(days, 1, 31),
        last_day=len(days) < len(day.split(",")),
        months=_values(month.split(","), 1, 12, MONTHS),
        weekdays=None if weekday in "*?" else _values(plain, 0, 6, DAYS),
        nth=frozenset(_nth(item) for item in special),
    )


def _nth(item: str) -> tuple[int, int]:
    day, mark, number = item.partition("#")
    return (_number(day, 0, DAYS) % 7, int(number)) if mark else (_number(item[:-1], 0, DAYS) % 7, 0)


def _values(items: list[str], low: int, high: int, names: list[str] | None = None) -> frozenset[int]:
    found, size = set[int](), high - low + 1
    for item in items:
        body, slash, step = item.partition("/")
        first, dash, last = body.partition("-")
        start = low if body in "*?" else _number(first, low, names)
        end = _number(last, low, names) if dash else start
        if body in "*?" or (slash and not dash):
            end = high
        if end < start:
            end += size
        for value in range(start, end + 1, int(step or 1)):
            found.add(low + (value - low) % size)
    return frozenset(found)


def _number(text: str, low: int, names: list[str] | None) -> int:
    return names.index(text) + low if names and text in names else int(text)
