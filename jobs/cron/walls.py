"""Matching wall times of a rule, on a clock that knows no zone: a matching day, and a matching time of that day."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import date, datetime, time

from jobs.cron.days import days_of
from jobs.cron.rule import Rule


class Walls:
    """All times are naive and whole minutes."""

    def __init__(self, rule: Rule) -> None:
        self._days = days_of(rule.day_streams)
        self._hours, self._minutes = sorted(rule.hours), sorted(rule.minutes)

    def after(self, wall: datetime) -> datetime | None:
        """The first match later than `wall`; None when the calendar ends before it."""
        today = wall.toordinal()
        day = self._days.first(today)
        if day == today:
            if (later := self._later(wall.hour, wall.minute)) is not None:
                return _at(day, later)
            day = self._days.first(today + 1)
        return None if day is None else _at(day, time(self._hours[0], self._minutes[0]))

    def up_to(self, wall: datetime) -> datetime | None:
        """The last match not later than `wall`; None when the calendar begins after it."""
        today = wall.toordinal()
        day = self._days.last(today)
        if day == today:
            if (earlier := self._up_to(wall.hour, wall.minute)) is not None:
                return _at(day, earlier)
            day = self._days.last(today - 1)
        return None if day is None else _at(day, time(self._hours[-1], self._minutes[-1]))

    def _later(self, hour: int, minute: int) -> time | None:
        """The first matching time of day after this one."""
        at = bisect_left(self._hours, hour)
        if at < len(self._hours) and self._hours[at] == hour:
            if (next_minute := bisect_right(self._minutes, minute)) < len(self._minutes):
                return time(hour, self._minutes[next_minute])
            at += 1
        return time(self._hours[at], self._minutes[0]) if at < len(self._hours) else None

    def _up_to(self, hour: int, minute: int) -> time | None:
        """The last matching time of day that is not after this one."""
        at = bisect_right(self._hours, hour)
        if at and self._hours[at - 1] == hour:
            if minutes := bisect_right(self._minutes, minute):
                return time(hour, self._minutes[minutes - 1])
            at -= 1
        return time(self._hours[at - 1], self._minutes[-1]) if at else None


def _at(day: int, moment: time) -> datetime:
    return datetime.combine(date.fromordinal(day), moment)
