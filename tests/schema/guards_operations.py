"""What each guard of the verbs prioritize and move, of the rollups and of the audit prevents: a small check that fails
without it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg

from jobs import counting, moving, rollups
from jobs.clock import DatabaseClock
from jobs.models import Kind, Outcome, QueueEntry, Rollup, Timer
from tests.factories import claim, process, schedule

Connection = psycopg.Connection[Any]
MINUTE = timedelta(minutes=1)


def a_running_job_is_not_moved(here: Connection) -> None:
    job = schedule(queue="here")
    claim(here, job, process(here))
    assert moving.move([job.id], "there").skipped == {"running": 1}
    assert QueueEntry.objects.get().queue == "here"


def a_moved_entry_runs_from_now_on(here: Connection) -> None:
    job = schedule()
    here.execute("UPDATE jobs_queueentry SET run_at = now() - interval '1 hour'")
    before = DatabaseClock().read(here)
    moving.prioritize([job.id], 5)
    assert QueueEntry.objects.get().run_at >= before - MINUTE


def an_entry_that_is_not_due_is_moved_to_no_earlier_time(here: Connection) -> None:
    job = schedule()
    here.execute("UPDATE jobs_queueentry SET run_at = now() + interval '1 hour'")
    moving.move([job.id], "there")
    assert QueueEntry.objects.get().run_at > DatabaseClock().read(here) + 30 * MINUTE


def another_priority_leaves_the_queue(here: Connection) -> None:
    ids = [schedule(queue="here").id, schedule(queue="here", delay=60 * MINUTE).id]
    moving.prioritize(ids, 5)
    assert (QueueEntry.objects.get().queue, Timer.objects.get().queue) == ("here", "here")
    assert (QueueEntry.objects.get().priority, Timer.objects.get().priority) == (5, 5)


def another_queue_leaves_the_priority(here: Connection) -> None:
    ids = [schedule(priority=3).id, schedule(priority=3, delay=60 * MINUTE).id]
    moving.move(ids, "there")
    assert (QueueEntry.objects.get().priority, Timer.objects.get().priority) == (3, 3)
    assert (QueueEntry.objects.get().queue, Timer.objects.get().queue) == ("there", "there")


def a_moved_entry_bears_the_number_of_the_command(here: Connection) -> None:
    job = schedule()
    moving.move([job.id], "there", action_id=4711)
    assert QueueEntry.objects.get().action_id == 4711


def _ended_at(here: Connection, **change: Any) -> Any:
    """The numbers of a minute in which one job ended, changed so."""
    minute = rollups.floor(DatabaseClock().read(here), 60)
    job = schedule(due_at=minute)
    job.cancel()
    values = {
        "state": "completed",
        "attempt": 1,
        "finished_at": minute,
        "started_at": job.created_at,
        "action_id": None,
    }
    Outcome.objects.update(**values | change)
    counting.count_minutes(here, minute, minute + MINUTE)
    return _counted(minute)


def _counted(minute: Any) -> rollups.Point:
    return rollups.total(rollups.totals(Kind.ALL, minute, minute + MINUTE).values())


def lateness_is_that_of_the_first_attempt(here: Connection) -> None:
    assert _ended_at(here, attempt=2).late.total == 0


def what_an_operator_moved_is_not_late(here: Connection) -> None:
    assert _ended_at(here, action_id=1).late.total == 0


def a_failed_job_is_late_once(here: Connection) -> None:
    assert _ended_at(here, state="failed").late.total == 0  # its attempt's row tells


def a_minute_is_no_longer_than_a_minute(here: Connection) -> None:
    minute = rollups.floor(DatabaseClock().read(here), 60)
    _ended_at(here, finished_at=minute + MINUTE)
    assert not Rollup.objects.filter(completed__gt=0).exists()


def a_minute_begins_at_its_beginning(here: Connection) -> None:
    minute = rollups.floor(DatabaseClock().read(here), 60)
    _ended_at(here, finished_at=minute - timedelta(microseconds=1))
    assert not Rollup.objects.filter(completed__gt=0).exists()


def counts_never_shrink(here: Connection) -> None:
    found = _ended_at(here)
    Outcome.objects.update(state="failed")
    counting.count_minutes(here, found.at, found.at + MINUTE)
    assert _counted(found.at).completed == 1


def a_minute_of_another_hour_is_not_in_the_sum(here: Connection) -> None:
    hour = rollups.floor(DatabaseClock().read(here), 3600)
    for at in (hour - MINUTE, hour, hour + 60 * MINUTE):
        Rollup.objects.create(kind="all", step=60, at=at, completed=1)
    Rollup.objects.create(kind="all", step=3600, at=hour, completed=7)
    counting.sum_hour(here, hour)
    assert Rollup.objects.get(step=3600).completed == 1
