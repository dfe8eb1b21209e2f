"""Write the enabled cron definitions of the type shell.run as a crontab, to stdout; others are named in comments."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from jobs.crontab import write
from jobs.importing import export
from jobs.management import arguments
from jobs.models import CronDefinition


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--user", action="store_true", help="for `crontab -`: without the column of users"
        )
        parser.add_argument("--tenant", help="of this tenant alone")
        parser.add_argument("--database", type=arguments.database, default="default")

    def handle(self, *args: Any, user: bool, tenant: str | None, database: str, **options: Any) -> None:
        found = CronDefinition.objects.using(database).filter(enabled=True).order_by("pk")
        if tenant is not None:
            found = found.filter(tenant__slug=tenant)
        entries, left = export(found.iterator())
        self.stdout.write(write(entries, users=not user), ending="")
        for reason in left:
            self.stdout.write(f"# left out: {reason!a}")
