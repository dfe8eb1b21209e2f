"""Marks lose nothing: what is committed late, or was skipped while somebody else had it, is claimed all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import cast
from uuid import UUID

import pytest
from django.db import connections, transaction

from jobs.leases import Claimer, looks
from jobs.leases.looks import SWEEP, WIDE
from jobs.models import Job
from jobs.registry import registry
from tests.factories import own_connection, process, take
from tests.racing import Connection, assert_sound, beside, due_job
from tests.statements import Noting
from tests.unit.looking import TIME
from tests.waiting import wait_until

pytestmark = pytest.mark.concurrency
NARROW = 0.2


@pytest.fixture(autouse=True)
def _time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks become due when a test says so."""
    monkeypatch.setattr(looks, "time", TIME)


class Started:
    """A claimer that has looked once, and the names of what it sent."""

    def __init__(self, connection: Connection) -> None:
        self.claimer = Claimer("test.noop", process(connection), registry.names())
        self._noting = Noting(connection)
        self.claim()

    def claim(self, seconds: float = 0.0) -> list[UUID]:
        """What it claims after so long."""
        TIME.now += seconds
        self.sent = self._noting.sent = []
        return [each.held.job_id for each in self.claimer.claim(cast(Connection, self._noting), 9, 9)]

    def proven(self) -> Started:
        """Everything that was open when it started has ended, and was hopped over once more."""

        def ask() -> bool:
            self.claim(SWEEP)
            return self.claimer.looks._started

        wait_until(ask, what="the end of what was open at the start")
        return self


def backdate(connection: Connection, seconds: float, *jobs: Job) -> None:
    """These have been due for so long, in the order given."""
    for number, job in enumerate(jobs):
        ago = timedelta(seconds=seconds - number / 1000)
        statement = "UPDATE jobs_queueentry SET run_at = clock_timestamp() - %s WHERE job_id = %s"
        connection.execute(statement, [ago, job.id])


@contextmanager
def open_transaction() -> Iterator[Connection]:
    with own_connection() as other, other.transaction():
        yield other


def test_an_entry_that_is_committed_late_is_claimed_after_a_wide_look(connection: Connection) -> None:
    mine = Started(connection)
    with transaction.atomic():
        late = due_job()
        backdate_here(0.8, late)  # earlier than narrow looks reach back
        early = beside(due_job).result(30)
        assert mine.claim(NARROW) == [early.id], "its mark has passed the other"
        assert mine.claim(NARROW) == []
    assert mine.claim(NARROW) == []
    assert mine.claim(WIDE - NARROW) == [late.id]
    assert mine.sent == ["look", "claim"]
    assert_sound()


def test_on_an_idle_server_too_a_proof_waits_for_who_is_open(connection: Connection) -> None:
    """Its number is the last that was given out: none that is younger has ended."""
    mine = Claimer("test.noop", process(connection), registry.names()).looks
    with open_transaction() as other:
        other.execute("SELECT pg_current_xact_id()")
        mine.look(connection)
        start = mine._since
        for _ in range(4):
            TIME.now += SWEEP
            mine.look(connection)
            assert (mine._since, mine.proven, mine._started) == (start, -1, False)

    def proven() -> bool:
        TIME.now += SWEEP
        mine.look(connection)
        return mine.proven > 1 and mine._started

    wait_until(proven)
    assert mine._since != start


def backdate_here(seconds: float, job: Job) -> None:
    """In the transaction of Django's connection."""
    with connections["default"].cursor() as cursor:
        backdate(cast(Connection, cursor), seconds, job)


def test_a_pair_that_was_not_committed_at_the_start_is_claimed_when_it_was_long_due(
    connection: Connection,
) -> None:
    with transaction.atomic():
        job = due_job()
        backdate_here(60, job)
        mine = Started(connection)
        assert mine.claim() == []
    assert mine.claim(WIDE) == [], "no look reaches back so far"
    assert mine.claim(SWEEP) == [job.id]
    assert "hop" in mine.sent
    assert_sound()


@contextmanager
def a_lock(job: Job) -> Iterator[None]:
    with open_transaction() as other:
        other.execute("SELECT FROM jobs_queueentry WHERE job_id = %s FOR UPDATE", [job.id])
        yield


@contextmanager
def a_claim(job: Job) -> Iterator[None]:
    with own_connection() as other:
        other_process = process(other)
        with other.transaction(force_rollback=True):
            assert [each.held.job_id for each in take(other, "test.noop", other_process, 1)] == [job.id]
            yield


@contextmanager
def a_cancel(job: Job) -> Iterator[None]:
    with transaction.atomic():
        assert job.cancel().changed == 1
        yield
        transaction.set_rollback(True)


Act = Callable[[Job], AbstractContextManager[None]]
rolled_back = pytest.mark.parametrize("act", [a_lock, a_claim, a_cancel])


@rolled_back
def test_what_was_skipped_while_another_had_it_is_claimed_after_a_sweep(
    connection: Connection, act: Act
) -> None:
    mine = Started(connection).proven()
    first, second = due_job(), due_job()
    backdate(connection, 60, first, second)
    mine.claimer.looks.restart()
    with act(first):
        assert mine.claim() == [second.id]
        assert mine.claim(WIDE) == []
    assert mine.claim(WIDE - 0.1) == [], "no look reaches back so far"
    assert mine.claim(SWEEP) == [first.id]
    assert mine.sent[-2:] == ["sweep", "claim"]
    assert_sound()


@rolled_back
def test_what_was_skipped_a_moment_ago_is_claimed_after_a_look(connection: Connection, act: Act) -> None:
    mine = Started(connection).proven()
    first, second = due_job(), due_job()
    with act(first):
        assert mine.claim(WIDE) == [second.id]
    assert mine.claim(WIDE) == [first.id]


def test_what_is_skipped_again_and_again_is_claimed_in_the_end(connection: Connection) -> None:
    """Each sweep that finds it takes the mark back, and the next claim touches it anew."""
    mine = Started(connection).proven()
    first, second = due_job(), due_job()
    backdate(connection, 60, first, second)
    mine.claimer.looks.restart()
    with a_lock(first):
        assert mine.claim() == [second.id]
        for _ in range(5):
            assert mine.claim(SWEEP) == []
    assert wait_until(lambda: mine.claim(SWEEP)) == [first.id]


def test_a_floor_does_not_pass_what_is_still_open(connection: Connection) -> None:
    mine = Started(connection).proven()
    first, second = due_job(), due_job()
    backdate(connection, 60, first, second)
    mine.claimer.looks.restart()
    with a_lock(first):
        assert mine.claim() == [second.id]
        floors = dict(mine.claimer.ring.floors)
        for _ in range(3):
            mine.claim(SWEEP)
        assert mine.claimer.ring.floors == floors
