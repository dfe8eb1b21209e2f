"""Print the statements that give an application role rows only, and a reading role even less; the owner runs them."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs import db
from jobs.grants import grants
from jobs.management import arguments


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("application", help="the role of workers, web and sibling apps")
        parser.add_argument("--reader", help="a role that may look at jobs and change nothing")
        parser.add_argument("--database", type=arguments.database, default="default")

    def handle(self, *args: Any, application: str, reader: str | None, database: str, **options: Any) -> None:
        try:
            with db.connect(database) as owner:
                for statement in grants(owner, application, reader):
                    self.stdout.write(f"{statement};")
        except ValueError as error:
            raise CommandError(str(error)) from error
