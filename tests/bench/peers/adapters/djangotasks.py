"""django-tasks-db, the database backend of Django's Tasks. It has no bulk API: 1,000 single calls share a transaction."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext

import django
from django.conf import settings
from django.core.management import call_command

BACKPORT = ["django_tasks"] if sys.version_info < (3, 12) else []

settings.configure(
    SECRET_KEY="only for this benchmark",
    USE_TZ=True,
    LOGGING_CONFIG=None,
    INSTALLED_APPS=[*BACKPORT, "django_tasks_db"],
    TASKS={"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []}},
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": os.environ.get("PGDATABASE", ""),  # libpq reads the rest from the environment
            "CONN_MAX_AGE": None,
        }
    },
)
django.setup()

from django.db import connection, transaction  # noqa: E402

if sys.version_info >= (3, 12):
    from django.tasks import task
else:
    from django_tasks import task  # type: ignore[import-not-found]

from tests.bench.peers.adapters.order import Order, when  # noqa: E402
from tests.bench.peers.adapters.record import record  # noqa: E402


@task()  # type: ignore[untyped-decorator]
def record_task(number: int, due: float, text: str) -> None:
    """It is found by its name in this module."""
    record(number, due, text)


def prepare() -> None:
    call_command("migrate", verbosity=0)


def schedule(order: Order) -> None:
    connection.ensure_connection()
    for jobs in order.calls():
        with transaction.atomic() if order.bulk else nullcontext():
            for job in jobs:
                record_task.using(run_after=when(job)).enqueue(**job)


def work(interval: float) -> None:
    call_command("db_worker", interval=interval, startup_delay=False, reload=False, verbosity=0)
