from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from jobs import verbs
from jobs.models import Attempt, Job, Outcome, QueueEntry, UniqueKey
from jobs.report import Report
from jobs.states import EDGES, RETRYABLE, JobState
from tests.db.verbs import SITUATIONS, job_so, places, stored
from tests.factories import claim, failed, finish, process, schedule

Connection = psycopg.Connection[Any]


@pytest.mark.parametrize("situation", SITUATIONS)
def test_retry_moves_what_ended_badly_and_leaves_the_rest(here: Connection, situation: str) -> None:
    job = job_so(situation, here)
    start, before = job.state, stored(here, job)
    assert isinstance(start, JobState)

    report = job.retry()

    if start in RETRYABLE:
        assert report == Report(changed=1)
        assert job.state in EDGES["retry"][1]
        assert places(here, job) == ["jobs_queueentry"]
    else:
        reason = "completed" if start is JobState.COMPLETED else "not ended"
        assert (report.changed, dict(report.skipped)) == (0, {reason: 1})
        assert stored(here, job) == before
    assert (start in EDGES["retry"][0]) == (report.changed == 1)


def test_the_second_of_two_retries_changes_nothing(here: Connection) -> None:
    job = job_so("failed", here)
    job.retry()
    before = stored(here, job)
    assert job.retry() == Report(skipped=Counter({"not ended": 1}))
    assert stored(here, job) == before


def test_attempts_are_counted_on_and_their_limit_is_raised(here: Connection) -> None:
    job = schedule(max_attempts=2)
    for _ in range(2):
        finish(here, claim(here, job, process(here)), failed(after=timedelta()))
    assert job.state is JobState.FAILED

    job.retry()

    entry = QueueEntry.objects.get(job_id=job.id)
    assert (entry.attempt, entry.max_attempts, entry.crashes, entry.waits) == (2, 4, 0, None)
    for _ in range(2):
        finish(here, claim(here, job, process(here)), failed(after=timedelta()))
    assert job.state is JobState.FAILED
    assert sorted(Attempt.objects.values_list("attempt", flat=True)) == [1, 2, 3, 4]


def test_a_limit_that_leaves_enough_attempts_is_not_lowered(here: Connection) -> None:
    job = job_so("failed", here, max_attempts=5)
    Outcome.objects.update(max_attempts=50)
    job.retry()
    assert QueueEntry.objects.get().max_attempts == 50


def test_the_new_entry_is_what_was_asked_for(here: Connection) -> None:
    job = job_so("failed", here, priority=4, group="g", tenant="t")
    Job.objects.filter(pk=job.pk).retry(action_id=3)
    entry = QueueEntry.objects.get(job_id=job.id)
    for name in ("due_at", "tenant_id", "queue", "job_type", "priority", "group", "concurrency_key"):
        assert getattr(entry, name) == getattr(job, name)
    assert (entry.action_id, entry.cancel_requested, entry.parked, entry.lease_token) == (
        3,
        False,
        None,
        None,
    )
    assert entry.run_at > job.created_at


def test_a_job_cancelled_before_it_was_due_waits_for_its_time(here: Connection) -> None:
    job = job_so("scheduled", here)
    job.cancel()
    job.retry()
    assert QueueEntry.objects.get(job_id=job.id).run_at == job.due_at
    assert job.state is JobState.SCHEDULED


def test_retry_takes_the_key_again(here: Connection) -> None:
    job = job_so("failed", here, unique_key="k")
    assert not UniqueKey.objects.exists()
    job.retry()
    assert UniqueKey.objects.get().job_id == job.id


def test_a_job_whose_key_another_one_holds_stays_ended_and_the_holder_is_named(here: Connection) -> None:
    job = job_so("failed", here, unique_key="k")
    other = job_so("failed", here)
    holder = schedule(unique_key="k")
    before = stored(here, job)

    report = Job.objects.filter(pk__in=[job.pk, other.pk]).retry()

    assert (report.changed, dict(report.skipped)) == (1, {f"unique key held by {holder.id}": 1})
    assert stored(here, job) == before
    assert UniqueKey.objects.get().job_id == holder.id


def test_of_two_jobs_that_want_the_same_key_back_one_gets_it(here: Connection) -> None:
    jobs = [job_so("failed", here, unique_key="k") for _ in range(2)]
    report = Job.objects.filter(pk__in=[job.pk for job in jobs]).retry()
    assert (report.changed, report.skipped.total()) == (1, 1)
    assert sorted(places(here, job)[0] for job in jobs) == ["jobs_outcome", "jobs_queueentry"]


def test_a_key_for_a_period_is_not_asked_for_again(here: Connection) -> None:
    job = job_so("failed", here, unique_key="k", unique_for=timedelta(hours=1))
    UniqueKey.objects.all().delete()
    assert job.retry().changed == 1
    assert not UniqueKey.objects.exists()


def test_an_unknown_id_is_not_found_and_a_repeated_one_counts_once(here: Connection) -> None:
    job = job_so("cancelled", here)
    report = verbs.retry([job.id, job.id, uuid4()])
    assert (report.changed, dict(report.skipped)) == (1, {"not found": 1})
