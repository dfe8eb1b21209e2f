"""Settle, into waiting again; keys; and many at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast
from uuid import uuid4

import psycopg
import pytest

from jobs.conf import conf
from jobs.leases import settle
from jobs.models import Attempt, Job, Outcome, QueueEntry, UniqueKey
from jobs.results import Completed, Failed, Held, Released, Result, Settlement, Snoozed
from jobs.states import JobState
from tests.factories import ERROR, claim, come_due, failed, process, schedule, server_time
from tests.statements import Noting

Connection = psycopg.Connection[Any]


def held(here: Connection, **options: Any) -> Held:
    return claim(here, schedule(**options), process(here)).held


def end(here: Connection, mine: Held, result: Result) -> None:
    assert set(settle(here, [Settlement(mine, result, None)]).fates) == {mine.job_id}


@pytest.mark.parametrize(
    ("result", "waits"),
    [(failed(after=timedelta(minutes=7)), "retry"), (Snoozed(timedelta(minutes=7)), "snooze")],
)
def test_the_wait_begins_when_the_attempt_is_settled(here: Connection, result: Result, waits: str) -> None:
    mine = held(here)
    before = server_time(here)
    end(here, mine, result)
    entry = QueueEntry.objects.get(job_id=mine.job_id)
    assert before <= entry.run_at - timedelta(minutes=7) <= server_time(here)
    assert entry.waits == waits


@pytest.mark.parametrize(
    "result", [failed(after=timedelta.max), Snoozed(timedelta.max)], ids=["retry", "snooze"]
)
def test_dx_01_no_wait_is_longer_than_a_job_can_be_scheduled_ahead(here: Connection, result: Result) -> None:
    mine = held(here)
    before = server_time(here)
    end(here, mine, result)
    run_at = QueueEntry.objects.get(job_id=mine.job_id).run_at
    assert before <= run_at - conf().max_horizon <= server_time(here)


def test_a_released_entry_may_run_at_once_and_never_lies_behind_the_claimers(here: Connection) -> None:
    mine = held(here)
    before = server_time(here)
    end(here, mine, Released())
    assert before <= QueueEntry.objects.get(job_id=mine.job_id).run_at <= server_time(here)


def test_a_released_retry_is_still_told_from_a_first_run(here: Connection) -> None:
    mine = held(here)
    end(here, mine, failed(after=timedelta()))
    come_due(here)
    again = claim(here, Job.objects.get(pk=mine.job_id), process(here)).held
    assert again.attempt == 2
    end(here, again, Released())
    entry = QueueEntry.objects.get(job_id=mine.job_id)
    assert (entry.waits, entry.attempt) == ("retry", 1)


def test_snoozes_use_up_no_attempts(here: Connection) -> None:
    mine = held(here, max_attempts=1)
    for _ in range(3):
        end(here, mine, Snoozed(timedelta()))
        come_due(here)
        mine = claim(here, Job.objects.get(pk=mine.job_id), process(here)).held
        assert mine.attempt == 1
    end(here, mine, Completed())


def test_the_third_crash_fails_the_job_whatever_attempts_are_left(here: Connection) -> None:
    mine = held(here, max_attempts=20)
    states = []
    for crashes in range(3):
        assert mine.crashes == crashes
        end(here, mine, Failed(ERROR, timedelta(), crashed=True))
        states.append(Job.objects.get(pk=mine.job_id).state)
        if states[-1] is not JobState.FAILED:
            # two crashes make it a suspect, which an ordinary claim leaves alone
            QueueEntry.objects.update(crashes=0)
            come_due(here)
            mine = claim(here, Job.objects.get(pk=mine.job_id), process(here)).held
            QueueEntry.objects.update(crashes=crashes + 1)
            mine = mine._replace(crashes=crashes + 1)
    assert states == [JobState.QUEUED, JobState.QUEUED, JobState.FAILED]
    assert Outcome.objects.get(job_id=mine.job_id).crashes == 3


def test_an_entry_whose_supervisor_was_lost_carries_the_crash_but_not_the_attempt(here: Connection) -> None:
    mine = held(here)
    end(here, mine, Released(crashed=True))
    entry = QueueEntry.objects.get(job_id=mine.job_id)
    assert (entry.crashes, entry.attempt, entry.waits) == (1, 0, None)


@pytest.mark.parametrize("result", [Completed(), failed(final=True)])
def test_a_key_is_free_when_its_job_has_ended(here: Connection, result: Result) -> None:
    mine = held(here, unique_key="k")
    other = schedule(unique_key="other")
    end(here, mine, result)
    assert UniqueKey.objects.get().job_id == other.id


@pytest.mark.parametrize("result", [failed(), Snoozed(timedelta()), Released()])
def test_a_key_is_kept_while_its_job_waits(here: Connection, result: Result) -> None:
    mine = held(here, unique_key="k")
    end(here, mine, result)
    assert UniqueKey.objects.get().job_id == mine.job_id


def test_a_key_for_a_period_outlives_its_job(here: Connection) -> None:
    mine = held(here, unique_key="k", unique_for=timedelta(hours=1))
    end(here, mine, Completed())
    assert UniqueKey.objects.get().job_id == mine.job_id


def test_a_mixed_batch_over_several_days_settles_each_by_itself(here: Connection) -> None:
    results: list[Result] = [
        Completed('"yes"'),
        failed(),
        failed(final=True),
        Snoozed(timedelta(hours=1)),
    ] * 2
    mine = [held(here, delay=timedelta(days=-(n // 4))) for n in range(len(results))]
    fenced = held(here)
    batch = [Settlement(each, result, None) for each, result in zip(mine, results, strict=True)]
    stranger = Settlement(fenced._replace(lease_token=uuid4()), Completed(), None)

    settled = settle(here, [*batch[::-1], stranger])

    assert set(settled.fates) == {each.job_id for each in mine}
    assert settled.fenced == {fenced.job_id}
    states = [Job.objects.get(pk=each.job_id).state.value for each in [*mine, fenced]]
    assert states == ["completed", "retryable", "failed", "scheduled"] * 2 + ["running"]
    assert Attempt.objects.count() == 4
    assert {row.due_at.date() for row in Outcome.objects.all()} == {each.due_at.date() for each in mine}


@pytest.mark.parametrize(
    ("days", "result", "statements"),
    [
        (1, Completed(), ["complete"]),
        (1, Completed("1"), ["end"]),
        (2, Completed(), ["lock_claims", "complete", "complete"]),
        (2, Completed("1"), ["lock_claims", "end", "end"]),
    ],
)
def test_completions_alone_are_one_statement_per_day_and_one_that_locks_those_of_several(
    here: Connection, days: int, result: Result, statements: list[str]
) -> None:
    batch = [Settlement(held(here, delay=timedelta(days=-(n % days))), result, None) for n in range(6)]
    noting = Noting(here)
    settle(cast(Connection, noting), batch)
    assert noting.sent == statements
    assert Outcome.objects.count() == 6
