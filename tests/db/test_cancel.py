from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from jobs import verbs
from jobs.errors import InvalidValue, PlaceUnknown
from jobs.ids import new_id
from jobs.models import Job, Outcome, QueueEntry, UniqueKey
from jobs.report import Report
from jobs.states import CANCELLABLE, EDGES, WAITING, JobState
from tests.db.verbs import SITUATIONS, job_so, places, stored
from tests.factories import schedule

Connection = psycopg.Connection[Any]
TOMORROW = datetime.now(UTC) + timedelta(days=1)


@pytest.mark.parametrize("verb", [verbs.cancel, verbs.retry, partial(verbs.reschedule, run_at=TOMORROW)])
def test_ids_come_as_text_too_and_what_is_none_is_refused_by_name(here: Connection, verb: Any) -> None:
    job = job_so("queued", here)
    with pytest.raises(InvalidValue, match=r"^ids: 'text' is no id of a job"):
        verb([job.id, "text"])
    with pytest.raises(InvalidValue, match=r"^ids: 'x' is no id of a job"):
        verb("x")
    assert job.state is JobState.QUEUED
    report = verb([str(job.id), job.id])
    assert report.changed + report.skipped["not ended"] == 1


@pytest.mark.parametrize("situation", SITUATIONS)
def test_cancel_moves_what_may_be_cancelled_and_leaves_the_rest(here: Connection, situation: str) -> None:
    job = job_so(situation, here)
    start, before = job.state, stored(here, job)
    assert isinstance(start, JobState)

    report = job.cancel()

    if start in WAITING:
        assert report == Report(changed=1)
        assert job.state is JobState.CANCELLED
        assert places(here, job) == ["jobs_outcome"]
    elif start is JobState.RUNNING:
        assert report == Report(requested=1)
        assert job.state is JobState.RUNNING
    else:
        assert (report.changed, report.requested, dict(report.skipped)) == (0, 0, {start.value: 1})
        assert stored(here, job) == before
    starts, ends = EDGES["cancel"]
    assert starts == CANCELLABLE
    assert job.state in ends or start not in starts


def test_a_second_cancel_finds_it_ended(here: Connection) -> None:
    job = job_so("queued", here)
    job.cancel()
    before = stored(here, job)
    assert dict(job.cancel().skipped) == {"cancelled": 1}
    assert stored(here, job) == before


def test_cancel_of_a_running_job_only_sets_the_flag(here: Connection) -> None:
    job = job_so("running", here)
    before = QueueEntry.objects.filter(job_id=job.id).values().get()
    job.cancel()
    after = QueueEntry.objects.filter(job_id=job.id).values().get()
    assert after == before | {"cancel_requested": True}


@pytest.mark.parametrize("situation", ["scheduled", "queued", "running", "retryable"])
def test_the_operators_action_is_noted(here: Connection, situation: str) -> None:
    job = job_so(situation, here)
    Job.objects.filter(pk=job.pk).cancel(action_id=7)
    rows = stored(here, job)
    assert [*Outcome.objects.values_list("action_id", flat=True),
            *QueueEntry.objects.values_list("action_id", flat=True)] == [7], rows  # fmt: skip


def test_the_outcome_keeps_the_number_of_attempts(here: Connection) -> None:
    job = job_so("retryable", here, max_attempts=4)
    job.cancel()
    outcome = Outcome.objects.get(job_id=job.id)
    assert (outcome.attempt, outcome.max_attempts, outcome.due_at) == (1, 4, job.due_at)


@pytest.mark.parametrize("situation", ["scheduled", "queued", "retryable"])
def test_a_cancelled_job_gives_up_its_key(here: Connection, situation: str) -> None:
    job = job_so(situation, here, unique_key="k")
    job.cancel()
    assert not UniqueKey.objects.exists()


def test_a_running_job_keeps_its_key_when_asked_to_stop(here: Connection) -> None:
    job = job_so("running", here, unique_key="k")
    job.cancel()
    assert UniqueKey.objects.get().job_id == job.id


def test_many_are_counted_by_what_became_of_them(here: Connection) -> None:
    jobs = [job_so(situation, here) for situation in SITUATIONS for _ in range(2)]
    report = Job.objects.filter(pk__in=[job.pk for job in jobs]).cancel()
    assert (report.changed, report.requested) == (8, 2)
    assert report.skipped == {"completed": 2, "failed": 2, "cancelled": 2}
    assert report.describe("cancelled").startswith(
        "8 cancelled, 2 running asked to stop, 6 skipped (2 cancelled"
    )
    assert all(len(places(here, job)) == 1 for job in jobs)


def test_others_are_not_touched(here: Connection) -> None:
    job, other = schedule(), schedule()
    before = stored(here, other)
    job.cancel()
    assert stored(here, other) == before


def test_ids_that_name_no_job_are_not_found(here: Connection) -> None:
    job = schedule()
    report = verbs.cancel([new_id(job.due_at), uuid4(), job.id])
    assert (report.changed, dict(report.skipped)) == (1, {"not found": 2})


def test_a_job_that_exists_but_is_nowhere_is_an_error_never_a_silent_nothing(here: Connection) -> None:
    job = schedule()
    QueueEntry.objects.all().delete()
    with pytest.raises(PlaceUnknown, match=str(job.id)):
        job.cancel()
