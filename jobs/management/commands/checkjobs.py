"""Check that every job is in exactly one place and print how many are in each state; exit 1 on any breach."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.invariant import check
from jobs.management import arguments
from jobs.states import JobState

SHOWN = 100


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--database", type=arguments.database, default="default")

    def handle(self, *args: Any, database: str, **options: Any) -> None:
        findings = check(database)
        for state in JobState:
            self.stdout.write(f"{state.value:>10} {findings.counts[state.value]:>12,}")
        for breach in findings.breaches[:SHOWN]:
            self.stderr.write(breach)
        if not findings.clean:
            raise CommandError(f"{len(findings.breaches)} breaches of the invariant")
        self.stdout.write("clean")
