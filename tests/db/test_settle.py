from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from jobs.leases import settle
from jobs.models import Attempt, Job, Outcome, QueueEntry
from jobs.results import Cancelled, Completed, Failed, Held, Released, Result, Settlement, Snoozed
from jobs.states import JobState
from tests.factories import ERROR, claim, failed, process, schedule, server_time

Connection = psycopg.Connection[Any]
S = JobState
HOUR = timedelta(hours=1)

COMPLETED, RELEASED, SNOOZED = Completed('{"sum": 3}'), Released(), Snoozed(timedelta(hours=2))
EXITS: list[tuple[Result, JobState, JobState, int]] = [
    # result, state, state when a cancel was requested, attempt afterwards
    (COMPLETED, S.COMPLETED, S.COMPLETED, 1),
    (failed(), S.RETRYABLE, S.CANCELLED, 1),
    (failed(final=True), S.FAILED, S.CANCELLED, 1),
    (Failed(ERROR, timedelta(), crashed=True), S.QUEUED, S.CANCELLED, 1),
    (SNOOZED, S.SCHEDULED, S.CANCELLED, 0),
    (RELEASED, S.QUEUED, S.CANCELLED, 0),
    (Released(crashed=True), S.QUEUED, S.CANCELLED, 0),
    (Cancelled(), S.CANCELLED, S.CANCELLED, 1),
]


def held(here: Connection, **options: Any) -> Held:
    return claim(here, schedule(**options), process(here)).held


def end(here: Connection, mine: Held, result: Result) -> Job:
    settled = settle(here, [Settlement(mine, result, None)])
    assert set(settled.fates) == {mine.job_id}
    assert not settled.fenced
    job: Job = Job.objects.get(pk=mine.job_id)
    return job


def contents(here: Connection) -> list[Any]:
    """Every row that a settle may write."""
    tables = ("jobs_queueentry", "jobs_outcome", "jobs_attempt", "jobs_uniquekey")
    return [here.execute(f"SELECT t.* FROM {table} t ORDER BY 1, 2, 3").fetchall() for table in tables]


@pytest.mark.parametrize(("result", "state", "_flagged", "attempt"), EXITS)
def test_each_result_leads_to_its_state(
    here: Connection, result: Result, state: JobState, _flagged: JobState, attempt: int
) -> None:
    mine = held(here, max_attempts=3)
    job = end(here, mine, result)
    assert job.state is state
    if state in (S.COMPLETED, S.FAILED, S.CANCELLED):
        assert not QueueEntry.objects.exists()
        assert Outcome.objects.get(job_id=job.id).attempt == attempt
    else:
        assert not Outcome.objects.exists()
        entry = QueueEntry.objects.get(job_id=job.id)
        assert (entry.attempt, entry.lease_token, entry.process_id, entry.claimed_at) == (
            attempt,
            None,
            None,
            None,
        )


@pytest.mark.parametrize(("result", "_state", "flagged", "_attempt"), EXITS)
def test_a_requested_cancel_decides_over_every_exit_but_completion(
    here: Connection, result: Result, _state: JobState, flagged: JobState, _attempt: int
) -> None:
    mine = held(here, max_attempts=3)
    Job.objects.filter(pk=mine.job_id).cancel(action_id=41)
    job = end(here, mine, result)
    assert job.state is flagged
    assert Outcome.objects.get(job_id=job.id).action_id == 41


@pytest.mark.parametrize("result", [each[0] for each in EXITS])
def test_a_lease_that_is_no_longer_ours_writes_nothing(here: Connection, result: Result) -> None:
    mine = held(here, unique_key="k")
    stolen = mine._replace(lease_token=uuid4())
    before = contents(here)
    settled = settle(here, [Settlement(stolen, result, None)])
    assert (settled.fates, settled.fenced) == ({}, {mine.job_id})
    assert contents(here) == before


@pytest.mark.parametrize("result", [each[0] for each in EXITS])
def test_an_entry_that_was_given_up_is_not_settled_by_its_old_token(here: Connection, result: Result) -> None:
    mine = held(here, unique_key="k")
    end(here, mine, RELEASED)
    before = contents(here)
    assert settle(here, [Settlement(mine, result, None)]).fenced == {mine.job_id}
    assert contents(here) == before


def test_a_settle_that_is_sent_again_after_a_lost_reply_is_not_called_fenced(here: Connection) -> None:
    mine = held(here)
    end(here, mine, COMPLETED)
    before = contents(here)
    again = settle(here, [Settlement(mine, COMPLETED, None)])
    assert (again.fates, again.fenced) == ({}, set())
    other = settle(here, [Settlement(mine._replace(lease_token=uuid4()), COMPLETED, None)])
    assert other.fenced == {mine.job_id}
    assert contents(here) == before


def test_the_last_attempt_fails_for_good(here: Connection) -> None:
    mine = held(here, max_attempts=1)
    assert end(here, mine, failed()).state is S.FAILED


def test_an_attempt_that_did_not_end_well_is_recorded(here: Connection) -> None:
    mine = held(here)
    end(here, mine, failed())
    row = Attempt.objects.get(job_id=mine.job_id)
    assert (row.lease_token, row.attempt, row.process_id) == (mine.lease_token, 1, mine.process_id)
    assert (row.error_class, row.message, row.traceback, row.fingerprint) == (
        ERROR.cls, ERROR.message, ERROR.traceback, ERROR.fingerprint,
    )  # fmt: skip


def test_only_failures_leave_an_attempt_row(here: Connection) -> None:
    for result, *_ in EXITS:
        Attempt.objects.all().delete()
        mine = held(here)
        end(here, mine, result)
        assert Attempt.objects.filter(job_id=mine.job_id).exists() == isinstance(result, Failed)


def test_the_outcome_says_how_it_ended(here: Connection) -> None:
    mine = held(here, max_attempts=4)
    started = server_time(here)
    settle(here, [Settlement(mine, Completed('{"sum": 3}', "note"), started)])
    outcome = Outcome.objects.get(job_id=mine.job_id)
    assert (outcome.due_at, outcome.attempt, outcome.max_attempts) == (mine.due_at, 1, 4)
    assert (outcome.lease_token, outcome.process_id) == (mine.lease_token, mine.process_id)
    assert (outcome.result, outcome.error, outcome.started_at) == ({"sum": 3}, "note", started)
    assert outcome.finished_at > started


def test_a_failed_outcome_has_a_short_error_and_its_fingerprint(here: Connection) -> None:
    mine = held(here)
    long = ERROR.__class__("ValueError", "x" * 1000, "", "f" * 16)
    end(here, mine, Failed(long, timedelta(), final=True))
    outcome = Outcome.objects.get(job_id=mine.job_id)
    assert outcome.error == "ValueError: " + "x" * 488
    assert outcome.error_fingerprint == "f" * 16


def test_nothing_to_settle_is_nothing_done(here: Connection) -> None:
    assert settle(here, []).fates == {}
