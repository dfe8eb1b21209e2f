"""Make days ahead, drop expired ones, or say what would be done."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from jobs import clock, partitions


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is no day; write it as 2026-12-31") from error


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("verb", choices=["plan", "ensure", "expire"])
        parser.add_argument(
            "--day", type=_day, action="append", help="ensure this day (UTC); may be repeated"
        )
        parser.add_argument("--database", default="default")

    def handle(self, *args: Any, verb: str, database: str, day: list[date] | None, **options: Any) -> None:
        now = clock.now(database)
        if verb == "plan":
            todo = partitions.plan(now, database)
            for step in todo.steps:
                self.stdout.write(f"{step.day} {step.action}: {step.reason}")
            self.stdout.write(f"{todo.days} days exist, {todo.ready} ready from today on")
        elif verb == "ensure":
            made = partitions.ensure(day or partitions.wanted_days(now), database)
            self.stdout.write(f"made {len(made)} days" + (f": {made[0]} to {made[-1]}" if made else ""))
        else:
            report = partitions.expire(now, database)
            self.stdout.write(
                f"dropped {len(report.dropped)} days, kept {len(report.kept)}, blocked {len(report.blocked)}"
            )
            for which, reason in [*report.kept.items(), *report.blocked.items()]:
                self.stdout.write(f"{which}: {reason}")
