"""Days of the past and their jobs, for the tests of what drops them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from importlib import import_module
from typing import Any

import psycopg
import pytest
from psycopg import sql

from jobs.models import Job
from jobs.partitions import bounds, read_days
from jobs.sql import leaf
from tests.factories import claim, failed, finish, process, schedule

Connection = psycopg.Connection[Any]

RETENTION = timedelta(days=60)
expiry = import_module("jobs.partitions.expire")
"""The module, whose name the function of the package hides."""
WAITING_ENTRY = (
    "INSERT INTO jobs_queueentry (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, "
    "max_attempts, crashes, cancel_requested) VALUES (%s, %s, now(), 1, 'q', 't', 0, 1, 2, 0, false)"
)


def expires(day: date) -> datetime:
    """A time at which this day has just become too old."""
    return bounds(day)[1] + RETENTION


def waiting(day: date) -> Job:
    return schedule(due_at=bounds(day)[0] + timedelta(hours=12))


def ended(connection: Connection, day: date) -> Job:
    job = waiting(day)
    finish(connection, claim(connection, job, process(connection)), failed(final=True))
    return job


def exists(connection: Connection, day: date) -> bool:
    return day in read_days(connection)


def interject(monkeypatch: pytest.MonkeyPatch, parent: str, act: Callable[[], object]) -> None:
    """Do something right after the leaf of this parent was detached."""
    real = expiry._detach

    def detach(connection: Connection, which: str, day: date) -> None:
        real(connection, which, day)
        if which == parent:
            act()

    monkeypatch.setattr(expiry, "_detach", detach)


def names(parent: str, day: date) -> tuple[sql.Identifier, sql.Identifier]:
    return sql.Identifier(parent), sql.Identifier(leaf(parent, day))
