"""Two leases of one job in one batch: an attempt of an old one, whose loss nobody knew of, beside the new one's."""

from __future__ import annotations

from typing import Any, NamedTuple

import psycopg
import pytest

from jobs.leases import settle
from jobs.models import Attempt, Outcome, QueueEntry
from jobs.results import Completed, Held, Released, Result, Settlement, Snoozed
from tests.db.test_settle import HOUR, contents
from tests.factories import claim, failed, process, schedule

Connection = psycopg.Connection[Any]


class Leases(NamedTuple):
    stale: Held
    fresh: Held


@pytest.fixture
def leases(here: Connection) -> Leases:
    """A server that crashed has lost a claim, which it had committed asynchronously; the job was claimed again."""
    job, mine = schedule(), process(here)
    stale = claim(here, job, mine).held
    QueueEntry.objects.update(lease_token=None, process_id=None, attempt=0)
    return Leases(stale, claim(here, job, mine).held)


def settled(here: Connection, *results: tuple[Held, Result]) -> tuple[int, int]:
    """Settle these in one batch, beside another job; of the one that has two leases, how often it was written and
    how often fenced."""
    other = claim(here, schedule(queue="other"), process(here)).held
    batch = [Settlement(held, result, None) for held, result in results]
    settled = settle(here, [*batch, Settlement(other, Completed(), None)])
    assert len(settled.batch) == len(results) + 1
    settled.fates.pop(other.job_id)
    return len(settled.fates), len(settled.fenced)


def written(leases: Leases) -> Outcome:
    outcome: Outcome = Outcome.objects.get(job_id=leases.fresh.job_id)
    assert outcome.lease_token == leases.fresh.lease_token
    return outcome


def test_a_stale_failure_behind_a_fresh_completion_writes_nothing(here: Connection, leases: Leases) -> None:
    assert settled(here, (leases.fresh, Completed()), (leases.stale, failed())) == (1, 1)
    assert written(leases).state == "completed"
    assert not Attempt.objects.exists()


def test_a_stale_failure_before_a_fresh_completion_writes_nothing(here: Connection, leases: Leases) -> None:
    assert settled(here, (leases.stale, failed(final=True)), (leases.fresh, Completed())) == (1, 1)
    assert written(leases).state == "completed"
    assert not Attempt.objects.exists()


@pytest.mark.parametrize("fresh_first", [True, False])
def test_a_stale_completion_does_not_take_the_place_of_a_fresh_one(
    here: Connection, leases: Leases, fresh_first: bool
) -> None:
    results = [(leases.fresh, Completed('"fresh"')), (leases.stale, Completed('"stale"'))]
    assert settled(here, *(results if fresh_first else results[::-1])) == (1, 1)
    assert written(leases).result == "fresh"


@pytest.mark.parametrize("fresh_first", [True, False])
@pytest.mark.parametrize(
    "result", [failed(), Snoozed(HOUR), Released()], ids=["failed", "snoozed", "released"]
)
def test_a_stale_completion_does_not_end_a_job_that_waits_again(
    here: Connection, leases: Leases, fresh_first: bool, result: Result
) -> None:
    results: list[tuple[Held, Result]] = [(leases.fresh, result), (leases.stale, Completed())]
    assert settled(here, *(results if fresh_first else results[::-1])) == (1, 1)
    assert not Outcome.objects.filter(job_id=leases.fresh.job_id).exists()
    assert QueueEntry.objects.get(job_id=leases.fresh.job_id).lease_token is None


def test_two_stale_leases_write_nothing(here: Connection, leases: Leases) -> None:
    QueueEntry.objects.update(lease_token=None, process_id=None)
    before = contents(here)
    batch = [Settlement(held, Completed(), None) for held in leases]
    again = settle(here, batch)
    assert (again.fates, again.fenced) == ({}, {leases.fresh.job_id})
    assert contents(here) == before


def test_a_lease_that_is_settled_twice_in_one_batch_ends_once(here: Connection, leases: Leases) -> None:
    """A job whose rows are written in one statement would be there twice."""
    assert settled(here, *[(leases.fresh, Completed())] * 2) == (1, 0)
    assert written(leases).state == "completed"
