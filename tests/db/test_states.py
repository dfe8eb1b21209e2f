from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from jobs.models import Job, QueueEntry
from jobs.states import EDGES, FINAL, WAITING, JobState
from tests.db.verbs import SITUATIONS, job_so, places
from tests.factories import schedule, server_time

Connection = psycopg.Connection[Any]
EXPECTED = {
    situation: JobState.SCHEDULED if situation == "snoozed" else JobState(situation)
    for situation in SITUATIONS
}


def window(job: Job) -> tuple[datetime, datetime]:
    return job.created_at - timedelta(days=1), job.created_at + timedelta(days=2)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_way_of_asking_gives_the_same_state(here: Connection, situation: str) -> None:
    job, expected = job_so(situation, here), EXPECTED[situation]
    assert job.state is expected
    assert Job.objects.with_state(*window(job)).get().state == expected
    (row,) = here.execute(
        "SELECT state FROM jobs_job_state WHERE id = %s AND due_at = %s", [job.id, job.due_at]
    ).fetchone() or (None,)
    assert row == expected
    assert [state for state in JobState if Job.objects.in_state(state, *window(job)).exists()] == [expected]


def test_a_page_of_jobs_has_each_its_state_and_every_state_its_jobs(here: Connection) -> None:
    jobs = {job_so(situation, here).id: EXPECTED[situation] for situation in SITUATIONS for _ in range(2)}
    some = Job.objects.all()[0]
    assert {job.id: job.state for job in Job.objects.with_state(*window(some))} == jobs
    for state in JobState:
        found = {job.id for job in Job.objects.in_state(state, *window(some))}
        assert found == {job_id for job_id, expected in jobs.items() if expected is state}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_job_is_in_exactly_one_place(here: Connection, situation: str) -> None:
    assert len(places(here, job_so(situation, here))) == 1


def test_a_window_that_ends_before_a_job_is_due_does_not_hold_it(here: Connection) -> None:
    job = schedule(delay=timedelta(days=1))
    for jobs in (
        Job.objects.with_state(job.created_at, job.due_at),
        Job.objects.due_between(job.created_at, job.due_at),
    ):
        assert not jobs.exists()
    assert Job.objects.with_state(job.due_at, job.due_at + timedelta(milliseconds=1)).exists()
    assert not Job.objects.in_state(JobState.SCHEDULED, job.created_at, job.due_at).exists()


def test_a_retryable_job_is_queued_by_time_alone(here: Connection) -> None:
    job = job_so("retryable", here)
    QueueEntry.objects.update(run_at=job.created_at - timedelta(hours=1))
    assert job.state is JobState.QUEUED
    assert Job.objects.in_state(JobState.QUEUED, *window(job)).exists()
    assert not Job.objects.in_state(JobState.RETRYABLE, *window(job)).exists()


def test_an_entry_says_the_same_of_its_job(here: Connection) -> None:
    for situation in ("queued", "running", "retryable", "snoozed"):
        job = job_so(situation, here)
        assert QueueEntry.objects.get(job_id=job.id).state(server_time(here)) is EXPECTED[situation]


@pytest.mark.parametrize("query", ["state", "with_state", "in_state"])
def test_asking_is_one_statement(here: Connection, query: str, django_assert_num_queries: Any) -> None:
    job = job_so("queued", here)
    with django_assert_num_queries(1):
        if query == "state":
            assert job.state
        elif query == "with_state":
            assert list(Job.objects.with_state(*window(job)))
        else:
            assert list(Job.objects.in_state(JobState.QUEUED, *window(job)))


def test_every_edge_starts_and_ends_in_known_states_and_nothing_leaves_a_final_one_but_retry() -> None:
    for verb, (starts, ends) in EDGES.items():
        assert starts
        assert ends
        assert starts | ends <= set(JobState)
        assert verb == "retry" or not starts & FINAL
    assert not WAITING & FINAL
