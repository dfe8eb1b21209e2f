"""A job or a day that somebody has locked (an open transaction, VACUUM FULL, ALTER TABLE) holds up no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta

import pytest
from django.db import transaction
from pytest_django import Settings

from dispatch.dispatcher import Dispatcher
from dispatch.settler import Settler
from jobs import clock, db
from jobs.leases import Settled, end, fetch, rescue
from jobs.leases.rescue import Autopsy, rescue_process
from jobs.models import Job, Outcome, QueueEntry, Timer
from jobs.partitions import day_of
from jobs.results import Claim, Completed, Settlement
from jobs.sql import leaf
from tests.concurrency.test_sessions import direct
from tests.factories import ERROR, claim, own_connection, process, schedule
from tests.racing import Connection, assert_sound
from tests.waiting import wait_until

pytestmark = pytest.mark.concurrency
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def short(settings: Settings) -> None:
    settings.SCHEDULER = {"lease": 3.0}


@pytest.fixture(params=[False, True], ids=["kept", "pooled"])
def session(connection: Connection, request: pytest.FixtureRequest) -> Iterator[Connection]:
    """As the loops have it."""
    with direct() if request.param else nullcontext(), db.connect(patience=3.0) as session:
        yield session


@contextmanager
def locked(parent: str, job: Job) -> Iterator[None]:
    with own_connection() as somebody, somebody.transaction():
        somebody.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        somebody.execute(f'LOCK TABLE "{leaf(parent, day_of(job.due_at))}" IN ACCESS EXCLUSIVE MODE')
        yield


def test_timers_of_other_days_are_dispatched(session: Connection) -> None:
    first, second = schedule(delay=DAY), schedule(delay=2 * DAY)
    dispatcher, now = Dispatcher(), clock.now() + 3 * DAY
    with locked("jobs_timer", first):
        assert dispatcher.run_once(session, now) == 1
        assert QueueEntry.objects.get().job_id == second.id
    assert Timer.objects.get().job_id == first.id
    assert Dispatcher().run_once(session, now) == 1
    assert_sound()


def test_claims_of_other_days_begin(session: Connection) -> None:
    mine = process(session)
    old, new = (claim(session, schedule(delay=delay), mine) for delay in (-DAY, timedelta()))
    claims = [each._replace(payload=None) for each in (old, new)]
    with locked("jobs_job", schedule(delay=-DAY)):
        assert fetch(session, claims) == ([new], [claims[0]])
    assert fetch(session, claims) == ([old, new], [])


@pytest.mark.parametrize("by_supervisor", [False, True])
def test_lost_claims_of_other_days_come_back(session: Connection, by_supervisor: bool) -> None:
    mine = process(session)
    old, other, new = (
        claim(session, schedule(delay=delay, max_attempts=attempts), mine).held
        for delay, attempts in ((-DAY, 1), (-DAY, 2), (timedelta(), 1))
    )
    end(session, [mine])
    autopsy = Autopsy(error=ERROR, guilty=frozenset({old.job_id, new.job_id}))

    def give_back() -> Settled:
        return rescue_process(session, mine, autopsy) if by_supervisor else rescue(session)

    with locked("jobs_outcome", schedule(delay=-DAY)):
        assert set(give_back().fates) == {other.job_id, new.job_id}
    assert set(give_back().fates) == {old.job_id}
    assert_sound()


def test_a_job_that_somebody_holds_is_left_to_the_rescue(session: Connection) -> None:
    """Its supervisor has others to bury and leases to renew."""
    mine = process(session)
    held, free = (claim(session, schedule(), mine).held for _ in range(2))
    with own_connection() as somebody, somebody.transaction():
        somebody.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        somebody.execute("SELECT FROM jobs_queueentry WHERE job_id = %s FOR UPDATE", [held.job_id])
        assert set(rescue_process(session, mine, Autopsy(error=ERROR)).fates) == {free.job_id}
    end(session, [mine])
    assert set(rescue(session).fates) == {held.job_id}
    assert_sound()


def results(claims: list[Claim]) -> Settler:
    """A settler that has been given all of these at once."""
    settler = Settler("default", "punctual test", lambda settled: None, lambda: None)
    for each in claims:
        settler.put(Settlement(each.held, Completed(), None))
    settler.start()
    return settler


def test_results_of_other_jobs_are_written_while_one_is_held_by_an_open_transaction(
    session: Connection,
) -> None:
    """As a view does that cancels a job and then waits for something else."""
    mine = process(session)
    claims = [claim(session, schedule(), mine) for _ in range(3)]
    with transaction.atomic():
        Job.objects.filter(id=claims[1].held.job_id).cancel()
        settler = results(claims)
        with own_connection() as seen:
            wait_until(
                lambda: seen.execute("SELECT count(*) FROM jobs_outcome").fetchone() == (2,),
                what="the results of the others",
            )
    settler.finish()
    assert Outcome.objects.filter(state="completed").count() == 3
    assert_sound()


def test_results_of_other_days_are_written_while_one_is_locked(session: Connection) -> None:
    mine = process(session)
    old, new = (claim(session, schedule(delay=delay), mine) for delay in (-DAY, timedelta()))
    with locked("jobs_outcome", schedule(delay=-DAY)):
        settler = results([old, new])
        wait_until(lambda: not QueueEntry.objects.filter(job_id=new.held.job_id).exists())
    settler.finish()
    assert Outcome.objects.filter(state="completed").count() == 2
    assert_sound()
