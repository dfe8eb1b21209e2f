"""Run jobs: a supervisor and its worker processes."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from dispatch.children import ChildSettings
from dispatch.ready import open_streams, require_migrated
from dispatch.shutdown import Shutdown
from dispatch.supervisor import CannotStart, Supervisor
from jobs.conf import conf
from jobs.db import is_pooled
from jobs.management.arguments import names, positive
from jobs.registry import registry


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--queues", type=names, help="comma-separated; default: those of all registered types"
        )
        parser.add_argument("--processes", type=positive, help="worker processes (default: settings)")
        parser.add_argument(
            "--threads", type=positive, help="bodies at once in each process (default: settings)"
        )
        parser.add_argument("--database", default="default", help="alias of the database whose jobs to run")

    def handle(self, *args: Any, database: str, **options: Any) -> None:
        open_streams()
        require_migrated(database)
        types = tuple(registry.names())
        queues = options["queues"] or tuple(sorted({job_type.queue for job_type in registry.types()}))
        if not queues:
            raise CommandError(
                "no job type is registered: decorate a handler with @job_type in an app's tasks.py"
            )
        settings = ChildSettings(
            queues=queues,
            types=types,
            threads=options["threads"] or conf().threads,
            using=database,
            listen=not is_pooled(database),
        )
        shutdown = Shutdown()
        shutdown.install()
        try:
            Supervisor(settings, options["processes"] or conf().processes, shutdown).run()
        except CannotStart as error:
            raise CommandError(str(error)) from error
