from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from jobs import verbs
from jobs.errors import InvalidJob
from jobs.ids import ceil_ms
from jobs.models import Job, QueueEntry
from jobs.report import Report
from jobs.states import EDGES, JobState
from tests.db.verbs import SITUATIONS, job_so, places, stored
from tests.factories import schedule

Connection = psycopg.Connection[Any]


@pytest.mark.parametrize("situation", SITUATIONS)
def test_reschedule_moves_what_waits_and_leaves_the_rest(here: Connection, situation: str) -> None:
    job = job_so(situation, here)
    start, before = job.state, stored(here, job)
    assert isinstance(start, JobState)
    run_at = job.created_at + timedelta(hours=3)

    report = job.reschedule(run_at)

    starts, ends = EDGES["reschedule"]
    if start in starts:
        assert report == Report(changed=1)
        assert job.state in ends
        assert places(here, job) == ["jobs_queueentry"]
        entry = QueueEntry.objects.get(job_id=job.id)
        assert (entry.run_at, entry.waits, entry.due_at) == (ceil_ms(run_at), "reschedule", job.due_at)
    else:
        assert (report.changed, dict(report.skipped)) == (0, {start.value: 1})
        assert stored(here, job) == before


@pytest.mark.parametrize("situation", ["scheduled", "queued", "retryable", "snoozed"])
def test_a_time_in_the_past_means_now(here: Connection, situation: str) -> None:
    job = job_so(situation, here)
    job.reschedule(job.created_at - timedelta(days=1))
    assert QueueEntry.objects.get(job_id=job.id).run_at > job.created_at
    assert job.state is JobState.QUEUED


def test_what_was_scheduled_becomes_the_entry_that_was_asked_for(here: Connection) -> None:
    job = job_so("scheduled", here, priority=4, group="g", max_attempts=6)
    Job.objects.filter(pk=job.pk).reschedule(job.due_at, action_id=3)
    entry = QueueEntry.objects.get(job_id=job.id)
    for name in ("due_at", "tenant_id", "queue", "job_type", "priority", "group", "max_attempts"):
        assert getattr(entry, name) == getattr(job, name)
    assert (entry.action_id, entry.attempt) == (3, 0)


def test_attempts_that_were_made_stay_counted(here: Connection) -> None:
    job = job_so("retryable", here)
    job.reschedule(job.created_at + timedelta(hours=3))
    assert QueueEntry.objects.get(job_id=job.id).attempt == 1
    assert job.state is JobState.SCHEDULED


def test_many_are_counted_by_what_became_of_them(here: Connection) -> None:
    jobs = [job_so(situation, here) for situation in SITUATIONS]
    report = verbs.reschedule([*(job.id for job in jobs), uuid4()], jobs[0].due_at)
    assert report.changed == 4
    assert report.skipped == {"running": 1, "completed": 1, "failed": 1, "cancelled": 1, "not found": 1}


def test_others_are_not_touched(here: Connection) -> None:
    job, other = schedule(), schedule()
    before = stored(here, other)
    job.reschedule(job.due_at + timedelta(hours=1))
    assert stored(here, other) == before


@pytest.mark.parametrize(
    "run_at",
    [
        datetime(2030, 1, 1),  # noqa: DTZ001
        datetime.max.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=timezone(-timedelta(hours=14))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime(2099, 1, 1, tzinfo=UTC),
        "2030-01-01T00:00Z",
        float("nan"),
        None,
    ],
    ids=str,
)
def test_dx_01_a_time_that_schedule_would_refuse_is_refused(here: Connection, run_at: Any) -> None:
    job = schedule(delay=timedelta(days=1))
    before = stored(here, job)
    with pytest.raises(InvalidJob, match="run_at"):
        job.reschedule(run_at)
    assert stored(here, job) == before
