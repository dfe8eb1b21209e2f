"""Matching days of a rule. Days are numbers (`date.toordinal`).

croniter does the walking, on naive midnights only: its own rule for daylight saving changes between releases.
"""

from __future__ import annotations

import copy
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Any

from croniter import croniter

_ANY = datetime(2000, 1, 1)  # noqa: DTZ001 - wall times have no zone here
REMEMBERED = 1000
"""Answers that an object keeps, each way: it stands for all rules that differ in the time of day alone, and they are
asked about the same few days."""


class Days:
    """Threads may share an object: each call walks on its own copies."""

    def __init__(self, streams: tuple[str, ...]) -> None:
        self._streams: tuple[Any, ...] = tuple(croniter(text, _ANY, ret_type=datetime) for text in streams)
        self._firsts: dict[int, int | None] = {}
        self._lasts: dict[int, int | None] = {}

    def first(self, day: int) -> int | None:
        """The first match that is not before `day`; None when the calendar ends before it."""
        try:
            return self._firsts[day]
        except KeyError:
            found = self._walk("get_next", day, timedelta(minutes=-1))  # croniter excludes its start
        first = min((match for match in found if match is not None), default=None)
        return _keep(self._firsts, day, first)

    def last(self, day: int) -> int | None:
        """The last match that is not after `day`; None when the calendar begins after it."""
        try:
            return self._lasts[day]
        except KeyError:
            found = self._walk("get_prev", day, timedelta(minutes=1))
        last = max((match for match in found if match is not None), default=None)
        return _keep(self._lasts, day, last)

    def _walk(self, method: str, day: int, excluded: timedelta) -> list[int | None]:
        return [_step(stream, method, day, excluded) for stream in self._streams]


@lru_cache(maxsize=1024)
def days_of(streams: tuple[str, ...]) -> Days:
    return Days(streams)


def _step(stream: Any, method: str, day: int, excluded: timedelta) -> int | None:
    try:
        start = datetime.combine(date.fromordinal(day), time()) + excluded
        match: datetime = getattr(copy.copy(stream), method)(datetime, start)
    except (ValueError, OverflowError):  # CroniterBadDateError, or the year left 1-9999
        return None
    return match.toordinal()


def _keep(known: dict[int, int | None], day: int, found: int | None) -> int | None:
    if len(known) >= REMEMBERED:
        known.clear()
    known[day] = found
    return found
