"""What a cron rule would do: its next fires, and what happens when the clocks change."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.utils.dateparse import parse_duration

from jobs.console.amounts import lasting
from jobs.cron import Recurrence, recurrence, zone
from jobs.cron.zones import Shift, shifts_between
from jobs.errors import CronError

FIRES = 10
AROUND = timedelta(hours=3)
"""Fires so near to a change of the clocks are shown with it."""
AT_MOST = 6
AHEAD = timedelta(days=400)
LIMITS = {"expression": 1000, "timezone": 100, "dst": 20, "every": 40}


class Fire(NamedTuple):
    local: str
    utc: str
    until: str = ""


class Change(NamedTuple):
    """A change of the clocks, and the fires around it."""

    told: str
    fires: list[Fire]
    is_cut: bool


def preview(posted: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """What is asked and what it does; `problem` where it does nothing."""
    asked = {name: str(posted.get(name, "")).strip()[:limit] for name, limit in LIMITS.items()}
    found: dict[str, Any] = {"asked": asked, "fires": [], "changes": [], "warnings": [], "problem": ""}
    try:
        tz = zone(asked["timezone"]).key
        every = parse_duration(asked["every"]) if asked["every"] and not asked["expression"] else None
        rule = recurrence(
            expression=asked["expression"], tz=tz, dst=asked["dst"] or "cron", every=every, anchor=now
        )
    except CronError as error:
        return found | {"problem": str(error)}
    return found | {
        "fires": fires(rule, tz, now, limit=FIRES, since=now),
        "changes": changes(rule, tz, now),
        "warnings": rule.warnings,
        "words": rule.description,
    }


def fires(
    rule: Recurrence,
    tz: str,
    after: datetime,
    end: datetime | None = None,
    *,
    limit: int = 5,
    since: datetime | None = None,
) -> list[Fire]:
    """The next fires later than `after`, on the wall clock of a zone with its offset, and in UTC."""
    found: list[Fire] = []
    moment = rule.next(after)
    while moment is not None and len(found) < limit and (end is None or moment <= end):
        local = moment.astimezone(zone(tz))
        until = f"in {lasting(moment - since)}" if since else ""
        found.append(Fire(f"{local:%a %Y-%m-%d %H:%M %z} {tz}", f"{moment:%Y-%m-%d %H:%M UTC}", until))
        moment = rule.next(moment)
    return found


def changes(rule: Recurrence, tz: str, now: datetime) -> list[Change]:
    """The next two changes of the zone's clock, each with the fires around it."""
    found = []
    for shift in shifts_between(now, now + AHEAD, zone(tz))[:2]:
        near = fires(rule, tz, shift.at - AROUND, shift.at + AROUND, limit=AT_MOST + 1)
        found.append(Change(_told(shift, tz), near[:AT_MOST], len(near) > AT_MOST))
    return found


def _told(shift: Shift, tz: str) -> str:
    way = "forward" if shift.is_gap else "back"
    return f"{shift.jumps_from:%A %d %B %Y}: {tz} goes {way} from {shift.jumps_from:%H:%M} to {shift.jumps_to:%H:%M}"
