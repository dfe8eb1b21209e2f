"""Matching wall times of a rule, on a clock that knows no zone.

croniter does the walking, on naive times only: its own rule for daylight saving changes between releases.
"""

from __future__ import annotations

import copy
from datetime import datetime, timedelta
from typing import Any

from croniter import croniter

from jobs.cron.rule import Rule

_ANY = datetime(2000, 1, 1)  # noqa: DTZ001 - wall times have no zone here


def minute_of(wall: datetime) -> datetime:
    """The whole minute at or before `wall`."""
    return wall.replace(second=0, microsecond=0, fold=0)


class Walls:
    """All times are naive and whole minutes. Threads may share an object: each call walks on its own copies."""

    def __init__(self, rule: Rule) -> None:
        self._streams: tuple[Any, ...] = tuple(
            croniter(text, _ANY, ret_type=datetime) for text in rule.streams
        )

    def after(self, wall: datetime) -> datetime | None:
        """The first match later than `wall`; None when the calendar ends before it."""
        found = [_step(stream, "get_next", minute_of(wall)) for stream in self._streams]
        return min((match for match in found if match is not None), default=None)

    def up_to(self, wall: datetime) -> datetime | None:
        """The last match not later than `wall`; None when the calendar begins after it."""
        # Half a minute on, because croniter excludes its start.
        found = [
            _step(stream, "get_prev", minute_of(wall) + timedelta(seconds=30)) for stream in self._streams
        ]
        return max((match for match in found if match is not None), default=None)


def _step(stream: Any, method: str, start: datetime) -> datetime | None:
    try:
        match: datetime = getattr(copy.copy(stream), method)(datetime, start)
    except (ValueError, OverflowError):  # CroniterBadDateError, or the year left 1-9999
        return None
    return match
