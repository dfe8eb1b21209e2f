"""Work out again, with a calendar of its own, when each cron definition should have fired; exit 1 unless every slot has
exactly one row in the ledger, and every row that says so its job."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs import clock
from jobs.management import arguments
from jobs.reconcile import reconcile

SHOWN = 100
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def _since(text: str) -> datetime | timedelta:
    if found := re.fullmatch(r"(\d{1,5})([mhd])", text):
        return timedelta(**{_UNITS[found[2]]: int(found[1])})
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError(
            f"{text!r} is neither a time like 2026-12-31T06:00+00:00 nor an age like 6h"
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--since",
            type=_since,
            default=timedelta(days=1),
            help="a time (UTC unless it says so) or an age: 90m, 6h, 7d",
        )
        parser.add_argument("--database", type=arguments.database, default="default")

    def handle(self, *args: Any, since: datetime | timedelta, database: str, **options: Any) -> None:
        now = clock.now(database)
        findings = reconcile(now - since if isinstance(since, timedelta) else since, database, now=now)
        self.stdout.write(f"{findings.definitions:,} definitions, {findings.expected:,} slots expected")
        for outcome, count in sorted(findings.outcomes.items()):
            self.stdout.write(f"{outcome:>10} {count:>12,}")
        for note in findings.notes[:SHOWN]:
            self.stdout.write(note)
        for breach in findings.breaches[:SHOWN]:
            self.stderr.write(breach)
        if not findings.clean:
            raise CommandError(f"{len(findings.breaches)} breaches of the ledger")
        self.stdout.write("clean")
