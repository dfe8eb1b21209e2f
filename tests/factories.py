"""A job in any state, through the real verbs, so that its rows always agree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any
from unittest.mock import patch

import psycopg
from django.db import connections
from psycopg.types.json import JsonbLoader

from dispatch.dispatcher import Dispatcher
from jobs import db
from jobs.clock import DatabaseClock
from jobs.leases import Claimer, fetch, register, settle
from jobs.models import Job, ProcessKind
from jobs.partitions import day_of
from jobs.registry import registry
from jobs.results import Cancelled, Claim, Completed, Failed, Result, Settlement, Snoozed
from jobs.states import JobState
from jobs.text import ErrorText

ERROR = ErrorText("ValueError", "no", "Traceback …\nValueError: no\n", "0123456789abcdef")

Connection = psycopg.Connection[Any]


def own_connection() -> Connection:
    """A real connection beside Django's; for tests with real commits. Close it."""
    return db.connect(name="punctual test")


class DjangosConnection(db.ServerBound):
    """Django's connection for the functions of the loops, which have their own: there JSON comes back parsed."""

    def __init__(self) -> None:
        connections["default"].ensure_connection()
        super().__init__(connections["default"].connection)

    def execute(self, query: Any, params: Any = None, **options: Any) -> psycopg.Cursor[Any]:
        cursor = psycopg.Cursor(self._raw)
        cursor.adapters.register_loader("jsonb", JsonbLoader)
        return cursor.execute(query, params, **options)


def schedule(job_type: str = "test.noop", payload: Any = None, **options: Any) -> Job:
    job: Job = Job.objects.schedule(job_type, payload, **options)
    return job


def process(connection: Connection, *, lease: timedelta = timedelta(hours=1)) -> int:
    """A registered worker process that lives for `lease`."""
    return register(connection, ProcessKind.WORKER, types=registry.names(), lease=lease)


def take(
    connection: Connection, queue: str, process_id: int, size: int = 100, free: int = 100
) -> list[Claim]:
    """Claim from one queue by a fresh claimer."""
    return Claimer(queue, process_id, registry.names()).claim(connection, size, free)


def server_time(connection: Connection) -> datetime:
    row = connection.execute("SELECT clock_timestamp()").fetchone()
    assert row
    moment: datetime = row[0]
    return moment


def come_due(connection: Connection) -> None:
    """Put what is due now before `now()`, in its order: in a test's rolled-back transaction `now()` stands still, and
    a job scheduled for now is due at the next whole millisecond."""
    connection.execute(
        "UPDATE jobs_queueentry SET run_at = run_at - (statement_timestamp() - now()) - interval '1 ms' "
        "WHERE lease_token IS NULL AND run_at > now() AND run_at <= statement_timestamp() + interval '1 ms'"
    )


@contextmanager
def on_the_day_of(moment: datetime) -> Iterator[None]:
    """Claims bring the payloads of jobs that are due on this day, also when the next one begins meanwhile."""
    with patch.object(import_module("jobs.leases.claim"), "day_of", lambda now: day_of(moment)):
        yield


def claim(connection: Connection, job: Job, process_id: int) -> Claim:
    """Claim until this job is held (others in its queue are claimed as well)."""
    come_due(connection)
    for _ in range(100):
        taken = take(connection, job.queue, process_id)
        claims, _missing = fetch(connection, taken)
        for each in claims:
            if each.held.job_id == job.id:
                return each
        if not taken:
            break
    raise AssertionError(f"{job} could not be claimed")


def finish(connection: Connection, held_by: Claim, result: Result) -> None:
    clock = DatabaseClock()
    settled = settle(connection, [Settlement(held_by.held, result, clock.read(connection))])
    assert held_by.held.job_id in settled.fates


def failed(*, after: timedelta = timedelta(hours=1), final: bool = False) -> Failed:
    return Failed(ERROR, after, final=final)


def dispatch(connection: Connection, *, ahead: timedelta = timedelta()) -> int:
    """One dispatch pass as if `ahead` had gone by."""
    return Dispatcher().run_once(connection, DatabaseClock().read(connection) + ahead)


def job_in(state: JobState, connection: Connection, job_type: str = "test.noop", **options: Any) -> Job:
    """A job in `state`, moved there by the verbs. Commits, so for tests with real transactions."""
    if state is JobState.SCHEDULED:
        return schedule(job_type, delay=timedelta(days=1), **options)
    job = schedule(job_type, **options)
    if state is JobState.QUEUED:
        return job
    held = claim(connection, job, process(connection))
    if state is JobState.RUNNING:
        return job
    results: dict[JobState, Result] = {
        JobState.COMPLETED: Completed('{"ok": true}'),
        JobState.FAILED: failed(final=True),
        JobState.CANCELLED: Cancelled(),
        JobState.RETRYABLE: failed(),
    }
    finish(connection, held, results[state])
    return job


def snoozed(connection: Connection) -> Job:
    job = schedule()
    finish(connection, claim(connection, job, process(connection)), Snoozed(timedelta(hours=1)))
    return job
