"""What `ensure` and `expire` would do now, with reasons: for the command, the checks and the console."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from jobs.conf import conf
from jobs.partitions.catalog import DayLeaves, bounds, day_of, maintenance, read_days
from jobs.partitions.expire import expired_before, unfinished


@dataclass(frozen=True)
class Step:
    """One day and what is to be done about it: make, drop or keep."""

    day: date
    action: str
    reason: str


@dataclass(frozen=True)
class Plan:
    steps: list[Step]
    days: int
    ready: int
    """Days from today on that are complete without a gap."""


def wanted_days(now: datetime) -> list[date]:
    """Yesterday (late commits), today and the days ahead."""
    return [day_of(now) + timedelta(days=n) for n in range(-1, conf().days_ahead + 1)]


def plan(now: datetime, using: str = "default") -> Plan:
    steps = []
    with maintenance(using) as connection:
        days = read_days(connection)
        for day in wanted_days(now):
            if day not in days:
                steps.append(Step(day, "make", "within the days made ahead"))
            elif not days[day].complete:
                steps.append(Step(day, "make", "some of its leaves are missing or detached"))
        for day, leaves in days.items():
            if bounds(day)[1] <= expired_before(now):
                reason = unfinished(connection, leaves)
                steps.append(
                    Step(day, "keep" if reason else "drop", reason or "past the retention, all jobs ended")
                )
    return Plan(sorted(steps, key=lambda step: step.day), len(days), ready(days, now))


def ready(days: Mapping[date, DayLeaves], now: datetime) -> int:
    """Days from today on that are complete without a gap."""
    count = 0
    while (day := day_of(now) + timedelta(days=count)) in days and days[day].complete:
        count += 1
    return count
