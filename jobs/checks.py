"""Numbered system checks. Those that ask the server carry Tags.database: `check` alone runs without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.db import DatabaseError, connections

from jobs import clock
from jobs.codecs import within
from jobs.conf import conf
from jobs.errors import NotConfigured, SchedulerError
from jobs.partitions import plan
from jobs.registry import registry

MIN_READY_DAYS = 3


@register(Tags.compatibility)
def check_settings(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    if not settings.USE_TZ:
        found.append(
            Error("USE_TZ is False: due times would be ambiguous.", hint="Set USE_TZ = True.", id="jobs.E001")
        )
    try:
        conf()
    except NotConfigured as error:
        found.append(Error(str(error), id="jobs.E002"))
    return found


@register(Tags.compatibility)
def check_handlers(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Annotations of handlers are read at the first job otherwise: too late."""
    found: list[CheckMessage] = []
    for job_type in registry.types():
        try:
            payload_type: Any = job_type.payload_type
            if payload_type is not None:
                within(payload_type)
        except (NameError, TypeError, SchedulerError) as error:
            found.append(Error(f"the handler of {job_type.name!r} cannot be read: {error}", id="jobs.E003"))
    return found


@register(Tags.database)
def check_database(
    app_configs: Sequence[Any] | None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    for alias in databases or []:
        connection = connections[alias]
        if connection.vendor != "postgresql":
            found.append(Error(f"the database {alias!r} is not PostgreSQL.", id="jobs.E010"))
        elif "jobs_job" in connection.introspection.table_names():
            found += _check_days(alias)
    return found


def _check_days(alias: str) -> list[CheckMessage]:
    try:
        ready = plan(clock.now(alias), alias).ready
    except (DatabaseError, SchedulerError) as error:
        return [CheckWarning(f"the days of {alias!r} could not be read: {error}", id="jobs.W011")]
    if ready >= MIN_READY_DAYS:
        return []
    return [
        CheckWarning(
            f"only {ready} days are ready in {alias!r}: jobs due later may fail to be scheduled.",
            hint="Run `manage.py managepartitions ensure`, or keep a dispatcher running.",
            id="jobs.W010",
        )
    ]
