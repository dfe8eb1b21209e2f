"""What an expression means, as sets: the form in which all spellings of one schedule are equal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SHORTEST_FEBRUARY = 28


def _text(values: Iterable[int], size: int) -> str:
    numbers = sorted(values)
    return "*" if len(numbers) == size else ",".join(map(str, numbers))


@dataclass(frozen=True)
class Rule:
    """Sets of local minutes, hours, months (1-12), days (1-31) and weekdays (0 is Sunday).

    `nth_weekdays` holds (weekday, k), k = 0 for the last of the month. `by_day` and `by_weekday` say whether
    that field restricts, which anything but a bare `*` or `?` does; when both do, a day needs only one of them.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    months: frozenset[int]
    days: frozenset[int]
    last_day: bool
    weekdays: frozenset[int]
    nth_weekdays: frozenset[tuple[int, int]]
    by_day: bool
    by_weekday: bool
    notes: tuple[str, ...] = ()

    @property
    def is_hourly(self) -> bool:
        """All 24 hours match, however they were written."""
        return len(self.hours) == 24

    @cached_property
    def every_day(self) -> bool:
        full_days, full_weekdays = len(self.days) == 31, len(self.weekdays) == 7
        if self.by_day and self.by_weekday:
            return full_days or full_weekdays
        return full_days and full_weekdays

    @property
    def possible_days(self) -> frozenset[int]:
        longest = max(_LONGEST[month - 1] for month in self.months)
        return frozenset(day for day in self.days if day <= longest)

    @cached_property
    def canonical(self) -> str:
        """Text in our dialect that parses to the same fires."""
        day = weekday = "*"
        if self.by_day and not self.every_day:
            day = ",".join(filter(None, (_text(self.days, 31), "L" if self.last_day else "")))
        if self.by_weekday and not self.every_day:
            last = [f"{weekday}L" for weekday, k in sorted(self.nth_weekdays) if not k]
            nth = [f"{weekday}#{k}" for weekday, k in sorted(self.nth_weekdays) if k]
            weekday = ",".join(filter(None, (_text(self.weekdays, 7), *nth, *last)))
        return f"{self._clock} {day} {_text(self.months, 12)} {weekday}"

    @cached_property
    def day_streams(self) -> tuple[str, ...]:
        """Texts for croniter whose union are the days of this rule, at midnight: none restricts both day fields, each can
        match.

        croniter reads `15 * 5#3` as AND, takes `L` beside 30 days for 31 days and so for `*`, and walks 50
        years for a day that never comes.
        """
        month = _text(self.months, 12)
        if self.every_day:
            return (f"0 0 * {month} *",)
        streams = []
        if self.by_day and self.possible_days:
            streams.append(f"0 0 {_text(self.possible_days, 31)} {month} *")
        if self.by_day and self.last_day:
            streams.append(f"0 0 L {month} *")
        if self.by_weekday and self.weekdays:
            streams.append(f"0 0 * {month} {_text(self.weekdays, 7)}")
        if self.by_weekday and self.nth_weekdays:
            nth = ",".join(f"{day}#{k}" if k else f"L{day}" for day, k in sorted(self.nth_weekdays))
            streams.append(f"0 0 * {month} {nth}")
        return tuple(streams)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Legal, but often not what was meant."""
        found = list(self.notes)
        if self.by_day and self.by_weekday:
            found.append(
                "both day fields are set: runs when EITHER matches" + (", so every day" * self.every_day)
            )
        shortest = min(_SHORTEST_FEBRUARY if month == 2 else _LONGEST[month - 1] for month in self.months)
        late = sorted(day for day in self.days if day > shortest)
        if self.by_day and late and not self.every_day:
            found.append(f"day of month: months without day {', '.join(map(str, late))} are skipped")
        return tuple(found)

    @property
    def _clock(self) -> str:
        return f"{_text(self.minutes, 60)} {_text(self.hours, 24)}"
