"""A new, migrated database for one workload, and the environment in which its processes find it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.test.utils import override_settings

from jobs import clock, partitions, tenants
from jobs.db import DIRECT_ALIAS
from scheduler_project import embedded
from scheduler_project.scratch import new_name, scratch, with_database

PREFIX = "punctual_benchmark_"
WORK = "scheduler_project.benchmark.work"


@contextmanager
def own_database() -> Iterator[None]:
    """While it lasts, Django's connections here and in child processes lead into it, with the scheduler's default
    settings. A pooler is left out: it does not know the new database."""
    name = new_name(PREFIX)
    ours = [alias for alias in ("default", DIRECT_ALIAS) if alias in connections.settings]
    before = {alias: dict(connections.settings[alias]) for alias in ours}
    server = before[ours[-1]]
    try:
        for alias in ours:
            connections[alias].close()
            connections.settings[alias].update({**server, "NAME": name})
        sweep = PREFIX if settings.OWN_DATABASE else None
        with override_settings(SCHEDULER={}, DEBUG=False), scratch(name, server["NAME"], sweep=sweep):
            _forget()
            call_command("migrate", "jobs", interactive=False, verbosity=0)
            partitions.ensure(partitions.wanted_days(clock.now()))
            with _environment(name):
                yield
    finally:
        _forget()
        for alias in ours:
            connections[alias].close()
            connections.settings[alias].update(before[alias])


def _forget() -> None:
    """What this process remembers of another database."""
    tenants.forget()
    partitions.known.clear()


@contextmanager
def _environment(name: str) -> Iterator[None]:
    """No setting of the user's scheduler stays."""
    before = dict(os.environ)
    server = before.get("DIRECT_DATABASE_URL", "").strip() or before.get("DATABASE_URL", "").strip()
    for variable in before:
        if variable.startswith("SCHEDULER_") or variable == "DIRECT_DATABASE_URL":
            del os.environ[variable]
    os.environ.update(
        DJANGO_SETTINGS_MODULE="scheduler_project.settings",
        DATABASE_URL=with_database(server or embedded.uri(), name),
        SCHEDULER_APPS=WORK,
        SECRET_KEY=secrets.token_urlsafe(50),
        ALLOWED_HOSTS="localhost",
        DEBUG="0",
        LOG_LEVEL="WARNING",
    )
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
