"""The rule for daylight saving time: which instants the matching wall times of a schedule stand for.

Both walks answer from the expression, the zone and the tz data alone, never from where the search starts, so
all nodes agree on every fire. Instants are aware, UTC; wall times naive.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

from jobs.cron.walls import Walls
from jobs.cron.zones import instant, reached_at, shift_around, wall

_MOMENT = timedelta(microseconds=1)
_MOST_GAPS = 100
"""`30 2 * 3 SUNL` in Berlin meets nothing but gaps, each spring until the year 9999: give up some time."""


class Walk(Protocol):
    def next(self, after: datetime) -> datetime | None: ...

    def prev(self, at: datetime) -> datetime | None: ...


class FirstReached:
    """Fires when the wall clock first reaches a matching time, so once for a time that is shown twice.

    What a gap skips fires once, when the gap ends; without `make_up` it is dropped.
    """

    def __init__(self, walls: Walls, tz: ZoneInfo, *, make_up: bool) -> None:
        self._walls, self._tz, self._make_up = walls, tz, make_up

    def next(self, after: datetime) -> datetime | None:
        match = self._walls.after(self._reached(after))
        if not self._make_up:
            match = _shown_after(self._walls, self._tz, match)
        return None if match is None else reached_at(match, self._tz)

    def prev(self, at: datetime) -> datetime | None:
        match = self._walls.up_to(self._reached(at))
        if not self._make_up:
            match = _shown_before(self._walls, self._tz, match)
        return None if match is None else reached_at(match, self._tz)

    def _reached(self, moment: datetime) -> datetime:
        """The latest wall time shown so far: in the second pass of an hour, the end of the first."""
        reading = wall(moment, self._tz)
        if not reading.fold:
            return reading
        shift = shift_around(reading, self._tz)
        return reading if shift is None else shift.jumps_from - _MOMENT


class EveryReading:
    """Fires at every minute whose wall reading matches: nothing made up, both passes of a repeated hour."""

    def __init__(self, walls: Walls, tz: ZoneInfo) -> None:
        self._walls, self._tz = walls, tz

    def next(self, after: datetime) -> datetime | None:
        reading = wall(after, self._tz)
        match = self._walls.after(reading)
        shift = shift_around(reading, self._tz)
        if shift is not None and not reading.fold and not (match and shift.covers(match)):
            # The first pass holds no more matches, but the second may, at wall times already shown.
            again = self._walls.after(shift.jumps_to - _MOMENT)
            if again is not None and shift.covers(again):
                return instant(again, self._tz, fold=1)
        match = _shown_after(self._walls, self._tz, match)
        if match is None:
            return None
        first = instant(match, self._tz)
        return first if first > after else instant(match, self._tz, fold=1)

    def prev(self, at: datetime) -> datetime | None:
        reading = wall(at, self._tz)
        match = self._walls.up_to(reading)
        shift = shift_around(reading, self._tz)
        if shift is not None and reading.fold and not (match and shift.covers(match)):
            # Nothing yet in the second pass: the first went further on the clock.
            match = self._walls.up_to(shift.jumps_from - _MOMENT)
        match = _shown_before(self._walls, self._tz, match)
        if match is None:
            return None
        last = instant(match, self._tz, fold=1)
        return last if last <= at else instant(match, self._tz)


def _shown_after(walls: Walls, tz: ZoneInfo, match: datetime | None) -> datetime | None:
    """`match`, or the first one after it that no gap skips."""
    for _ in range(_MOST_GAPS):
        shift = None if match is None else shift_around(match, tz)
        if shift is None or not shift.is_gap:
            return match
        match = walls.after(shift.jumps_to - _MOMENT)
    return None


def _shown_before(walls: Walls, tz: ZoneInfo, match: datetime | None) -> datetime | None:
    for _ in range(_MOST_GAPS):
        shift = None if match is None else shift_around(match, tz)
        if shift is None or not shift.is_gap:
            return match
        match = walls.up_to(shift.jumps_from - _MOMENT)
    return None
