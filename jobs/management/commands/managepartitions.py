"""Make days ahead, drop expired ones, or say what would be done."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import date, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs import clock, partitions
from jobs.conf import conf
from jobs.errors import SchedulerError
from jobs.ids import EPOCH
from jobs.management import arguments


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is no day; write it as 2026-12-31") from error


def _checked(days: list[date], now: datetime) -> list[date]:
    """CommandError for a day that no job can be due on, of a year with a typo: there is room for so many days."""
    last = partitions.day_of(now + conf().max_horizon)
    for day in days:
        if not EPOCH.date() <= day <= last:
            raise CommandError(f"no job can be due on {day}: it is before 1970 or beyond the horizon, {last}")
    return days


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("verb", choices=["plan", "ensure", "expire"])
        parser.add_argument(
            "--day", type=_day, action="append", help="ensure this day (UTC); may be repeated"
        )
        parser.add_argument("--database", type=arguments.database, default="default")

    def handle(self, *args: Any, verb: str, database: str, day: list[date] | None, **options: Any) -> None:
        now = clock.now(database)
        if verb == "plan":
            todo = partitions.plan(now, database)
            for step in todo.steps:
                self.stdout.write(f"{step.day} {step.action}: {step.reason}")
            self.stdout.write(f"{todo.days} days exist, {todo.ready} ready from today on")
        elif verb == "ensure":
            try:
                made = partitions.ensure(_checked(day or partitions.wanted_days(now), now), database)
            except SchedulerError as error:
                raise CommandError(str(error)) from error
            self.stdout.write(f"made {len(made)} days" + (f": {made[0]} to {made[-1]}" if made else ""))
        else:
            report = partitions.expire(now, database)
            self.stdout.write(
                f"dropped {len(report.dropped)} days, kept {len(report.kept)}, blocked {len(report.blocked)}"
            )
            for which, reason in [*report.kept.items(), *report.blocked.items()]:
                self.stdout.write(f"{which}: {reason}")
