"""Cron text -> sets of numbers, by the dialect of docs/cron.md; nothing but this reads what a user typed.

Strict on purpose: five fields or an alias, ASCII only, no value that a common cron would read another way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from jobs.cron.rule import Rule
from jobs.errors import CronError, describe

MAX_LENGTH = 512
"""Characters. Keeps the cost of a parse, and of a row, bounded."""

ALIASES: Mapping[str, str] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_ALLOWED = re.compile(r"[0-9A-Za-z*/,\-?#@ \t]*")
_ITEM = re.compile(r"(?:\*|([0-9]+|[A-Za-z]+)(?:-([0-9]+|[A-Za-z]+))?)(?:/([0-9]+))?")
_NTH = re.compile(r"([0-9]+|[A-Za-z]+)#([0-9]+)")
_LAST_WEEKDAY = re.compile(r"([0-9]+|[A-Za-z]{3})L", re.IGNORECASE)


def _names(words: str, first: int) -> dict[str, int]:
    return {word: number for number, word in enumerate(words.split(), first)}


@dataclass(frozen=True, slots=True, eq=False)
class _Field:
    """One of the five: its values run from `low` to `high`; `top` is the largest number that may be typed."""

    name: str
    low: int
    high: int
    top: int
    names: Mapping[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    def error(self, message: str) -> CronError:
        return CronError(self.name, message)

    def value(self, text: str) -> int:
        """A number or a name as typed: 7 stays 7, because `5-7` must not become `5-0`."""
        if not text.isdecimal():
            try:
                return self.names[text.upper()]
            except KeyError:
                known = f" (names are {', '.join(self.names)})" if self.names else ""
                raise self.error(f"{describe(text)} is not a value{known}") from None
        number = int(text)
        if not self.low <= number <= self.top:
            raise self.error(f"{describe(text)} is not between {self.low} and {self.top}")
        return number

    def step(self, text: str | None) -> int:
        if text is None:
            return 1
        number = int(text)
        if not 1 <= number <= self.size:
            raise self.error(
                f"step {describe(text)} is not between 1 and {self.size}, the size of this field"
            )
        return number

    def wrapped(self, number: int) -> int:
        return self.low + (number - self.low) % self.size


_MINUTE = _Field("minute", 0, 59, 59)
_HOUR = _Field("hour", 0, 23, 23)
_DAY = _Field("day of month", 1, 31, 31)
_MONTH = _Field("month", 1, 12, 12, _names("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", 1))
_WEEKDAY = _Field("day of week", 0, 6, 7, _names("SUN MON TUE WED THU FRI SAT", 0))


def _ends(spec: _Field, first: str | None, last: str | None, *, stepped: bool) -> tuple[int, int]:
    """First and last number of an item; a range that wraps, like `22-3`, ends beyond the field: 22-27."""
    if first is None:
        return spec.low, spec.high
    start = spec.value(first)
    end = spec.high if last is None and stepped else spec.value(last or first)
    return start, end if end >= start else end + spec.size


def _values(spec: _Field, item: str, note: Callable[[str], None]) -> set[int]:
    """One item of a list: `*`, `a`, `a-b`, each with an optional step; `a/s` runs to the end of the field."""
    if item.isdecimal():
        return {spec.wrapped(spec.value(item))}
    found = _ITEM.fullmatch(item)
    if found is None:
        problem = f"{describe(item)} cannot be read" if item else "an item of the list is empty"
        raise spec.error(f"{problem}; use *, a, a-b, */n, a-b/n and lists of these")
    first, last, step_text = found.groups()
    step = spec.step(step_text)
    start, end = _ends(spec, first, last, stepped=step_text is not None)
    if (start, end) == (spec.low, spec.high):
        _note_step(spec, item, step, note)
    return {spec.wrapped(number) for number in range(start, end + 1, step)}


def _note_step(spec: _Field, item: str, step: int, note: Callable[[str], None]) -> None:
    if step == spec.size:
        note(f"{spec.name}: {item} matches {spec.low} only")
    elif spec.size % step:
        note(f"{spec.name}: {item} starts again at {spec.low} each time, so its last gap is not {step}")


@lru_cache(maxsize=4096)
def _list(spec: _Field, text: str) -> tuple[frozenset[int], tuple[str, ...]]:
    """The values of a list, and notes about it. Remembered: of many rules most differ in a field or two."""
    notes: list[str] = []
    values = frozenset[int]().union(*(_values(spec, item, notes.append) for item in text.split(",")))
    return values, tuple(notes)


def _days(text: str) -> tuple[frozenset[int], bool, tuple[str, ...]]:
    """Days of the month, whether `L` is among them, and notes."""
    items = text.split(",")
    plain = [item for item in items if item not in ("L", "l")]
    values, notes = _list(_DAY, ",".join(plain)) if plain else (frozenset[int](), ())
    return values, len(plain) < len(items), notes


def _weekdays(text: str) -> tuple[frozenset[int], frozenset[tuple[int, int]], tuple[str, ...]]:
    """Weekdays (0 is Sunday), pairs (weekday, k) for the k-th of the month, k = 0 for the last, and notes."""
    plain, nth = list[str](), set[tuple[int, int]]()
    for item in text.split(","):
        if found := _NTH.fullmatch(item):
            day, number = _WEEKDAY.wrapped(_WEEKDAY.value(found[1])), int(found[2])
            if not 1 <= number <= 5:
                raise _WEEKDAY.error(f"{describe(item)}: the number after # is not between 1 and 5")
            nth.add((day, number))
        elif found := _LAST_WEEKDAY.fullmatch(item):
            nth.add((_WEEKDAY.wrapped(_WEEKDAY.value(found[1])), 0))
        else:
            plain.append(item)
    values, notes = _list(_WEEKDAY, ",".join(plain)) if plain else (frozenset[int](), ())
    return values, frozenset(nth), notes


def _fields(text: str) -> list[str]:
    if len(text) > MAX_LENGTH:
        raise CronError("expression", f"longer than {MAX_LENGTH} characters")
    if not _ALLOWED.fullmatch(text):
        bad = next(character for character in text if not _ALLOWED.fullmatch(character))
        raise CronError("expression", f"character {bad!a} is not allowed")
    parts = text.split()
    if len(parts) == 1 and parts[0].startswith("@"):
        if parts[0].lower() not in ALIASES:
            raise CronError("expression", f"unknown alias {describe(text)}; known are {', '.join(ALIASES)}")
        parts = ALIASES[parts[0].lower()].split()
    if len(parts) != 5:
        seconds = "; seconds and years are not supported" if len(parts) > 5 else ""
        raise CronError("expression", f"needs 5 fields, has {len(parts)}{seconds}")
    return parts


def parse(text: str) -> Rule:
    """The rule this text stands for. CronError, with the field's name, for everything doubtful."""
    minute, hour, day, month, weekday = _fields(text)
    minutes, minute_notes = _list(_MINUTE, minute)
    hours, hour_notes = _list(_HOUR, hour)
    months, month_notes = _list(_MONTH, month)
    days, last_day, day_notes = _days("*" if day == "?" else day)
    weekdays, nth, weekday_notes = _weekdays("*" if weekday == "?" else weekday)
    notes = (*minute_notes, *hour_notes, *month_notes, *day_notes, *weekday_notes)
    rule = Rule(
        minutes=minutes,
        hours=hours,
        months=months,
        days=days,
        last_day=last_day,
        weekdays=weekdays,
        nth_weekdays=nth,
        by_day=day not in ("*", "?"),
        by_weekday=weekday not in ("*", "?"),
        notes=tuple(dict.fromkeys(notes)),
    )
    if not rule.day_streams:
        raise CronError("day of month", "no month of this expression has such a day: it would never run")
    return rule
