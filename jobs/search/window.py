"""The window of time that every look at the jobs has."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta

from django.utils import timezone

MAX = timedelta(days=31)
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Window:
    """[start, end)."""

    start: datetime
    end: datetime

    def upto(self, moment: datetime) -> Window:
        """Its part up to this millisecond, included."""
        return Window(self.start, min(self.end, moment + timedelta(milliseconds=1)))

    def since(self, moment: datetime) -> Window:
        return Window(max(self.start, moment), self.end)

    def first(self, length: timedelta) -> Window:
        """Its beginning, of this length at most."""
        return Window(self.start, min(self.end, self.start + length))

    def last(self, length: timedelta) -> Window:
        """Its end, of this length at most."""
        return Window(max(self.start, self.end - length), self.end)


def days(first: int, last: int) -> Window:
    """Whole days of the current zone, counted from today."""
    today = timezone.localdate()
    zone = timezone.get_current_timezone()
    return Window(
        datetime.combine(today + first * DAY, time.min, zone),
        datetime.combine(today + (last + 1) * DAY, time.min, zone),
    )


def last_hour() -> Window:
    """Up to the end of this minute."""
    end = timezone.now().replace(second=0, microsecond=0) + timedelta(minutes=1)
    return Window(end - timedelta(minutes=61), end)
