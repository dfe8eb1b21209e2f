"""What the next jumps of a zone's clock will do to a schedule, in words an operator can check."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from jobs.cron.walls import Walls
from jobs.cron.zones import Shift, shifts_between

AHEAD = timedelta(days=400)
"""More than a year, so that both jumps of an ordinary zone are seen."""
_MOMENT = timedelta(microseconds=1)


def coming_shifts(walls: Walls, tz: ZoneInfo, now: datetime, dst: str) -> Iterator[str]:
    """One sentence for each jump that hits a matching wall time."""
    try:
        shifts = shifts_between(now, now + AHEAD, tz)
    except OverflowError:
        return
    for shift in shifts:
        first = walls.after(min(shift.jumps_from, shift.jumps_to) - _MOMENT)
        if first is not None and shift.covers(first):
            yield _sentence(first, shift, tz, dst)


def _sentence(first: datetime, shift: Shift, tz: ZoneInfo, dst: str) -> str:
    where = f"{first:%Y-%m-%d %H:%M} {tz.key}"
    if shift.is_gap:
        return f"{where} does not exist: " + (
            f"what the gap skips runs once, at {_moment(shift.at, tz)}" if dst == "cron" else "not run"
        )
    passes = [
        _moment(shift.at + (first - shift.jumps_from), tz),
        _moment(shift.at + (first - shift.jumps_to), tz),
    ]
    if dst == "literal":
        return f"{where} comes twice: runs at {passes[0]} and at {passes[1]}"
    return f"{where} comes twice: runs the first time only, at {passes[0]}"


def _moment(moment: datetime, tz: ZoneInfo) -> str:
    return f"{moment.astimezone(tz):%Y-%m-%d %H:%M%z} ({moment:%H:%MZ})"
