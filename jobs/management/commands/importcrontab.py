"""Read a crontab into cron definitions of the type shell.run. Writes nothing unless --apply is given."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs import clock, importing
from jobs.conf import conf
from jobs.cron import Recurrence, zone
from jobs.crontab import read
from jobs.errors import CronError
from jobs.handlers.shell import ANY
from jobs.management import arguments

FIRES = 5


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", help="/etc/crontab, a file of /etc/cron.d, or what `crontab -l` prints; - reads stdin"
        )
        parser.add_argument(
            "--user", action="store_true", help="a user's own crontab (crontab -l): it has no column of users"
        )
        parser.add_argument(
            "--timezone", default="UTC", help="where the file has no CRON_TZ; the zone of the old host"
        )
        parser.add_argument("--tenant", default="default")
        parser.add_argument(
            "--apply", action="store_true", help="write the definitions; else only say what would be"
        )
        parser.add_argument("--database", type=arguments.database, default="default")

    def handle(self, *args: Any, file: str, user: bool, timezone: str, **options: Any) -> None:
        database: str = options["database"]
        try:
            zone(timezone)
        except CronError as error:
            raise CommandError(f"--timezone: {error.message}") from error
        crontab = read(_text(file), users=not user)
        name = "crontab" if file == "-" else Path(file).name
        try:
            found = importing.prepare(
                crontab.entries, name=name, timezone=timezone, tenant=options["tenant"], using=database
            )
        except ValueError as error:
            raise CommandError(f"--tenant: {error}") from error
        for note in crontab.notes:
            self.stdout.write(note)
        for definition in found.new:
            self.stdout.write(
                f"new    {definition.expression:<20} {definition.timezone:<16} {definition.name}"
            )
            rule = definition.rule()
            self.stdout.write(
                f"       next {', '.join(_next(rule, definition.timezone, clock.now(database)))}"
            )
            for warning in rule.warnings:
                self.stdout.write(f"       {warning}")
        for definition in found.known:
            self.stdout.write(f"known  {definition.name}")
        refused = [(problem.line, problem.text, problem.reason) for problem in crontab.problems]
        refused += [(entry.line, entry.command, reason) for entry, reason in found.refused]
        for line, text, reason in sorted(refused):
            self.stderr.write(f"{file}:{line}: {reason}\n    {text}")
        self._say_what_is_not_allowed(found)
        if refused:
            raise CommandError(f"{len(refused)} lines cannot be taken over; nothing was written")
        if not options["apply"]:
            self.stdout.write(f"{len(found.new)} definitions would be written: repeat with --apply")
            return
        self.stdout.write(f"{importing.store(found, database)} definitions written")

    def _say_what_is_not_allowed(self, found: importing.Import) -> None:
        allowed = conf().shell_commands
        commands = {each.payload["command"] for each in found.new} - set(allowed)
        if commands and ANY not in allowed:
            listed = "".join(f"    {command!r},\n" for command in sorted(commands))
            self.stdout.write(f"Not allowed yet; in settings, SCHEDULER['shell_commands'] needs:\n{listed}")


def _next(rule: Recurrence, timezone: str, after: datetime) -> Iterator[str]:
    """The next fires on the wall clock of their zone, with its offset."""
    for _ in range(FIRES):
        moment = rule.next(after)
        if moment is None:
            return
        yield f"{moment.astimezone(zone(timezone)):%a %Y-%m-%d %H:%M%z}"
        after = moment


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} cannot be read: {error}") from error
