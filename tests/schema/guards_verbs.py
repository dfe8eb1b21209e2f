"""What each guard of schedule, cancel, retry and reschedule prevents: a small check that fails without it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg

from jobs.models import Outcome, QueueEntry, UniqueKey
from jobs.states import JobState
from tests.factories import claim, failed, finish, job_in, process, schedule

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)


def a_running_job_is_not_cancelled_from_outside(here: Connection) -> None:
    job = job_in(JobState.RUNNING, here)
    job.cancel()
    assert QueueEntry.objects.filter(job_id=job.id, cancel_requested=True).exists()
    assert not Outcome.objects.exists()


def a_completed_job_is_not_retried(here: Connection) -> None:
    job = job_in(JobState.COMPLETED, here)
    job.retry()
    assert job.state is JobState.COMPLETED


def attempt_numbers_never_repeat(here: Connection) -> None:
    job = schedule(max_attempts=1)
    finish(here, claim(here, job, process(here)), failed())
    job.retry()
    entry = QueueEntry.objects.get()
    assert (entry.attempt, entry.max_attempts) == (1, 2)


def a_retried_job_does_not_run_early(here: Connection) -> None:
    job = schedule(delay=HOUR)
    job.cancel()
    job.retry()
    assert QueueEntry.objects.get().run_at == job.due_at


def a_running_job_is_not_rescheduled(here: Connection) -> None:
    job = job_in(JobState.RUNNING, here)
    job.reschedule(job.due_at + HOUR)
    assert QueueEntry.objects.get().run_at < job.due_at + HOUR


def a_held_key_is_not_taken(here: Connection) -> None:
    holder = schedule(unique_key="k")
    assert schedule(unique_key="k") == holder


def a_key_whose_period_lasts_is_not_taken_over(here: Connection) -> None:
    holder = schedule(unique_key="k", unique_for=HOUR)
    assert schedule(unique_key="k") == holder


def _an_expired_key_stays(here: Connection, **other: Any) -> None:
    holder = schedule(unique_key="k", unique_for=HOUR)
    schedule(**{"unique_key": "k", **other})
    here.execute("UPDATE jobs_uniquekey SET expires_at = clock_timestamp() WHERE job_id = %s", [holder.id])
    schedule(**{"unique_key": "k", **other})
    assert UniqueKey.objects.filter(job_id=holder.id).exists()


def an_expired_key_of_another_tenant_stays(here: Connection) -> None:
    _an_expired_key_stays(here, tenant="other")


def an_expired_key_of_another_type_stays(here: Connection) -> None:
    _an_expired_key_stays(here, job_type="test.echo")


def another_expired_key_stays(here: Connection) -> None:
    _an_expired_key_stays(here, unique_key="other")


def an_entry_starts_no_earlier_than_it_was_inserted(here: Connection) -> None:
    job = schedule(delay=-HOUR)
    assert QueueEntry.objects.get().run_at > job.due_at
