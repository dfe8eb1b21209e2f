from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from pytest_django import Settings

from dispatch.dispatcher import SWEEP, Dispatcher
from jobs.clock import DatabaseClock
from jobs.models import Job, QueueEntry, Timer
from jobs.states import JobState
from tests.db.verbs import places
from tests.factories import dispatch, schedule

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)


def now(connection: Connection) -> datetime:
    return DatabaseClock().read(connection)


def test_what_comes_due_within_the_look_ahead_moves_into_its_queue(here: Connection) -> None:
    soon = schedule(delay=HOUR, priority=4, group="g", max_attempts=7, tenant="t")
    later = schedule(delay=HOUR + timedelta(minutes=1))
    assert dispatch(here, ahead=HOUR - timedelta(seconds=4)) == 1
    entry = QueueEntry.objects.get()
    for name in ("due_at", "tenant_id", "queue", "job_type", "priority", "group", "max_attempts"):
        assert getattr(entry, name) == getattr(soon, name)
    assert (entry.attempt, entry.crashes, entry.waits, entry.parked, entry.lease_token) == (
        0,
        0,
        None,
        None,
        None,
    )
    assert Timer.objects.get().job_id == later.id


def test_the_look_ahead_is_a_setting_and_its_end_is_not_within(here: Connection, settings: Settings) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "look_ahead": 60}
    job = schedule(delay=HOUR)
    work = Dispatcher()
    assert work.run_once(here, job.due_at - timedelta(seconds=60)) == 0
    assert work.run_once(here, job.due_at - timedelta(seconds=59.999)) == 1


def test_an_entry_written_ahead_waits_for_its_due_time(here: Connection) -> None:
    job = schedule(delay=HOUR)
    dispatch(here, ahead=HOUR)
    assert QueueEntry.objects.get().run_at == job.due_at
    assert job.state is JobState.SCHEDULED


def test_what_is_dispatched_late_runs_from_now_on_not_from_the_past(here: Connection) -> None:
    job = _timer_of_the_past(here, timedelta(hours=1))
    before = now(here)
    assert dispatch(here) == 1
    assert QueueEntry.objects.get(job_id=job.id).run_at >= before


def test_a_batch_is_the_earliest_and_the_rest_comes_next(here: Connection, settings: Settings) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "dispatch_batch": 3}
    work, at = Dispatcher(), now(here) + HOUR
    jobs = [schedule(due_at=at - timedelta(seconds=n)) for n in range(7)]
    assert work.run_once(here, at) == 3
    assert {entry.job_id for entry in QueueEntry.objects.all()} == {job.id for job in jobs[-3:]}
    assert [work.run_once(here, at) for _ in range(3)] == [3, 1, 0]


def test_a_batch_may_span_days(here: Connection) -> None:
    for days in range(4):
        schedule(delay=timedelta(days=days, hours=1))
    assert dispatch(here, ahead=timedelta(days=2, hours=1)) == 3


def test_a_timer_of_an_old_day_is_as_due_as_todays(here: Connection) -> None:
    old, recent = _timer_of_the_past(here, timedelta(days=2)), _timer_of_the_past(here, timedelta(hours=1))
    assert dispatch(here) == 2
    assert places(here, old) == places(here, recent) == ["jobs_queueentry"]


def test_old_days_are_looked_into_again_after_a_while(
    here: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = 1000.0
    monkeypatch.setattr("dispatch.dispatcher.boottime", lambda: at)
    work = Dispatcher()
    work.run_once(here, now(here))
    job = _timer_of_the_past(here, timedelta(days=2))  # a transaction that was open for long commits now
    assert work.run_once(here, now(here)) == 0
    at += SWEEP
    assert work.run_once(here, now(here)) == 1
    assert places(here, job) == ["jobs_queueentry"]


def test_an_interrupted_dispatcher_looks_into_all_days_at_once(here: Connection) -> None:
    work = Dispatcher()
    work.run_once(here, now(here))
    _timer_of_the_past(here, timedelta(days=2))
    work.interrupted()
    assert work.run_once(here, now(here)) == 1


def test_nothing_due_is_nothing_done(here: Connection) -> None:
    schedule(delay=HOUR)
    assert dispatch(here) == 0
    assert Timer.objects.count() == 1


def test_a_timer_beside_an_entry_is_reported_and_left_and_the_others_go_on(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = [schedule(delay=HOUR + timedelta(seconds=n)) for n in range(6)]
    broken = jobs[2]
    connection.execute(
        "INSERT INTO jobs_queueentry (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, "
        "max_attempts, crashes, cancel_requested) SELECT job_id, due_at, due_at, tenant_id, queue, job_type, "
        "priority, 0, 1, 0, false FROM jobs_timer WHERE job_id = %s",
        [broken.id],
    )
    work, at = Dispatcher(), now(connection) + 2 * HOUR
    with caplog.at_level(logging.ERROR, "dispatch.dispatcher"):
        moved = [work.run_once(connection, at) for _ in range(6)]
    assert sum(moved) == 5
    assert [record.__dict__["job"] for record in caplog.records] == [str(broken.id)]
    assert places(connection, broken) == ["jobs_timer", "jobs_queueentry"]
    assert Timer.objects.count() == 1


def test_workers_get_a_hint_when_something_is_due_before_they_look(connection: Connection) -> None:
    connection.execute("LISTEN jobs_queued")
    job = schedule(delay=HOUR)
    assert Dispatcher().run_once(connection, job.due_at - timedelta(seconds=4.5)) == 1
    assert list(connection.notifies(timeout=0)) == [], "it is due later than their next look"
    schedule(delay=HOUR)
    dispatch(connection, ahead=HOUR)
    assert len(list(connection.notifies(timeout=5, stop_after=1))) == 1


def _timer_of_the_past(here: Connection, ago: timedelta) -> Job:
    """A job that was due some time ago and was never dispatched."""
    job = schedule(due_at=now(here) - ago)
    here.execute(
        "WITH gone AS (DELETE FROM jobs_queueentry WHERE job_id = %s RETURNING *) "
        "INSERT INTO jobs_timer (job_id, due_at, tenant_id, queue, job_type, priority, max_attempts) "
        "SELECT job_id, due_at, tenant_id, queue, job_type, priority, max_attempts FROM gone",
        [job.id],
    )
    return job


def test_a_backlog_of_older_days_is_moved_pass_after_pass(here: Connection) -> None:
    jobs = [schedule(delay=HOUR) for _ in range(6)]
    work = Dispatcher()
    work.batch = 2
    days_later = jobs[0].due_at + timedelta(days=4)
    assert [work.run_once(here, days_later) for _ in range(3)] == [2, 2, 2]
