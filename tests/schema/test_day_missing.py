"""Claims and settles when a day has no leaves: it was dropped by hand, or nobody made it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from jobs import clock
from jobs.leases import Autopsy, Claimer, fetch, rescue, rescue_process, settle
from jobs.models import Job, QueueEntry, Tenant
from jobs.partitions import PARENTS, day_of, ensure
from jobs.registry import registry
from jobs.results import Completed, Failed, Held, Released, Result, Settlement
from jobs.sql import leaf
from tests.factories import ERROR, claim, process, schedule
from tests.waiting import wait_until

Connection = psycopg.Connection[Any]
DAY = timedelta(days=1)


def drop(connection: Connection, due_at: datetime) -> None:
    """All leaves of this moment's day."""
    day = day_of(due_at)
    for parent in PARENTS:
        connection.execute(f'DROP TABLE IF EXISTS "{leaf(parent, day)}"')


@pytest.fixture(autouse=True)
def _days(connection: Connection) -> Iterator[None]:
    """They are there again afterwards, and the queue is empty."""
    yield
    connection.execute("TRUNCATE jobs_queueentry")
    ensure([day_of(clock.now()) + days * DAY for days in (-1, 0)])


def due_yesterday() -> Job:
    return schedule(delay=-DAY)


def held_yesterday(connection: Connection) -> Held:
    return claim(connection, due_yesterday(), process(connection)).held


@pytest.mark.parametrize("limit", [None, 5])
def test_without_leaves_of_today_what_waits_is_still_claimed(
    connection: Connection, limit: int | None
) -> None:
    job = due_yesterday()
    Tenant.objects.update(max_running=limit)
    drop(connection, clock.now())
    claimer = Claimer("test.noop", process(connection), registry.names())
    claims, missing = fetch(connection, claimer.claim(connection, 5, 5))
    assert [(each.held.job_id, each.payload) for each in claims] == [(job.id, "{}")]
    assert not missing


def test_a_claim_of_a_job_whose_day_was_dropped_is_told_from_the_rest(connection: Connection) -> None:
    gone, there = due_yesterday(), schedule()
    claimer = Claimer("test.noop", process(connection), registry.names())
    drop(connection, gone.due_at)
    taken = wait_until(lambda: claimer.claim(connection, 5, 5))
    claims, missing = fetch(connection, taken)
    assert [each.held.job_id for each in claims] == [there.id]
    assert [each.held.job_id for each in missing] == [gone.id]


@pytest.mark.parametrize("result", [Completed(), Completed("1"), Failed(ERROR, DAY), Released()])
def test_a_result_of_a_dropped_day_that_was_taken_over_is_fenced(
    connection: Connection, result: Result
) -> None:
    """Nobody needs it any more: it would be tried again for ever."""
    held = held_yesterday(connection)
    QueueEntry.objects.all().delete()
    drop(connection, held.due_at)
    settled = settle(connection, [Settlement(held, result, None)])
    assert (settled.fates, settled.fenced) == ({}, {held.job_id})


def test_it_takes_nothing_from_its_batch(connection: Connection) -> None:
    held = held_yesterday(connection)
    QueueEntry.objects.all().delete()
    drop(connection, held.due_at)
    good = claim(connection, schedule(), process(connection)).held
    settled = settle(connection, [Settlement(each, Completed(), None) for each in (held, good)])
    assert (set(settled.fates), settled.fenced) == ({good.job_id}, {held.job_id})


@pytest.mark.parametrize("result", [Completed(), Failed(ERROR, DAY, final=True)])
def test_a_result_of_a_dropped_day_that_is_still_ours_is_an_error_and_waits(
    connection: Connection, result: Result
) -> None:
    held = held_yesterday(connection)
    drop(connection, held.due_at)
    batch = [Settlement(held, result, None)]
    with pytest.raises(psycopg.errors.UndefinedTable):
        settle(connection, batch)
    assert QueueEntry.objects.get().lease_token == held.lease_token
    ensure([day_of(held.due_at)])
    assert set(settle(connection, batch).fates) == {held.job_id}


def test_a_lost_claim_of_a_dropped_day_takes_no_other_along(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """On its last attempt it would be recorded there."""
    bad = claim(connection, schedule(delay=-DAY, max_attempts=1), process(connection)).held
    good = [claim(connection, schedule(max_attempts=1), process(connection)).held for _ in range(4)]
    drop(connection, bad.due_at)
    connection.execute("UPDATE jobs_process SET lease_expires_at = clock_timestamp()")
    assert set(rescue(connection).fates) == {each.job_id for each in good}
    assert "a lost claim cannot be given back" in caplog.text
    assert QueueEntry.objects.get().lease_token == bad.lease_token
    ensure([day_of(bad.due_at)])
    assert set(rescue(connection).fates) == {bad.job_id}


def test_nor_does_one_of_a_dead_child(connection: Connection) -> None:
    mine = process(connection)
    bad = claim(connection, due_yesterday(), mine).held
    good = [claim(connection, schedule(), mine).held for _ in range(4)]
    drop(connection, bad.due_at)
    guilty = frozenset(each.job_id for each in [bad, *good])
    rescued = rescue_process(connection, mine, Autopsy(error=ERROR, guilty=guilty))
    assert set(rescued.fates) == {each.job_id for each in good}
