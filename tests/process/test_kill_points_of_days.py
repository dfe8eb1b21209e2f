"""A process that makes or drops a day is killed at every round trip: whoever comes next finds a whole day or none, no
job is lost, and nothing stands in the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest
from django.db import connections
from psycopg import sql
from pytest_django import Settings

from jobs import clock, partitions, verbs
from jobs.models import Job, QueueEntry
from jobs.partitions import PARENTS, bounds, day_of, ensure, expire, read_days
from jobs.results import Completed
from jobs.states import JobState
from tests import commands as commands_of_tests
from tests.dying import Mortals, mortals
from tests.factories import claim, dispatch, finish, own_connection, process, schedule
from tests.racing import Connection, assert_sound, beside_on_own, wait_for_waiter
from tests.schema.days import RETENTION, ended, exists, expires, names, waiting
from tests.waiting import wait_until

pytestmark = pytest.mark.process
AHEAD = timedelta(days=200)

_TO_TIMER = (
    "WITH gone AS (DELETE FROM jobs_queueentry RETURNING *) "
    "INSERT INTO jobs_timer (job_id, due_at, tenant_id, queue, job_type, priority, max_attempts) "
    "SELECT job_id, due_at, tenant_id, queue, job_type, priority, max_attempts FROM gone"
)
_END_WAITERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid)) "
    "AND datname = current_database()"
)
T = TypeVar("T")


@pytest.fixture
def mortal(transactional_db: None, tmp_path: Path) -> Iterator[Mortals]:
    env = commands_of_tests.environment() | {"SCHEDULER_RETENTION": str(RETENTION.total_seconds())}
    with mortals(env, tmp_path) as started:
        yield started


@pytest.fixture
def new(connection: Connection) -> Iterator[date]:
    """A day that is not there yet."""
    day = day_of(clock.now() + AHEAD)
    yield day
    drop(connection, day)


@pytest.fixture
def old(connection: Connection, settings: Settings) -> Iterator[date]:
    """A day of the past that may still get jobs."""
    settings.SCHEDULER = {**settings.SCHEDULER, "retention": RETENTION}
    day = day_of(clock.now()) - timedelta(days=50)
    ensure([day])
    yield day
    drop(connection, day)


def drop(connection: Connection, day: date) -> None:
    connections["default"].close()
    for parent in PARENTS:
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {1}").format(*names(parent, day)))
    partitions.known.clear()


def strikes(
    mortal: Mortals, call: Callable[[], Any], prepare: Callable[[], T]
) -> Iterator[tuple[int, str, T]]:
    """Prepare and kill, once for each point: the number and the first word of its trip, and what was prepared. Points
    are after each trip, and in the middle of those that commit."""
    open_transaction = False
    for number in count():
        prepared = prepare()
        if (trip := mortal.strike(call, number, sent=False)) is None:
            return
        word = trip.split()[0]
        yield number, word, prepared
        open_transaction = word == "enter" or (open_transaction and word != "exit")
        if word in ("exit", "ALTER", "DROP") and not open_transaction:
            prepared = prepare()
            assert mortal.strike(call, number, sent=True) == trip
            yield number, word, prepared


def half_detached(connection: Connection, parent: str, day: date, detach: Callable[[], Any]) -> None:
    """Begin a detach beside a reader, for whom it waits, and end its session there."""
    with own_connection() as reader, reader.transaction(force_rollback=True):
        reader.execute(sql.SQL("SELECT FROM {}").format(sql.Identifier(parent)))
        detach()
        wait_for_waiter(reader)
        wait_until(lambda: not connection.execute(_END_WAITERS, [reader.info.backend_pid]).fetchall())
    assert read_days(connection)[day].pending == {parent}


def taken_apart(connection: Connection, day: date) -> Job:
    """A job that waits for its dispatch in a day whose leaves are detached, those of the timers by half."""
    ensure([day])
    job = waiting(day)
    connection.execute(_TO_TIMER)
    by_half = sql.SQL("ALTER TABLE {} DETACH PARTITION {} CONCURRENTLY").format(*names("jobs_timer", day))
    half_detached(connection, "jobs_timer", day, lambda: beside_on_own(lambda own: own.execute(by_half)))
    for parent in set(PARENTS) - {"jobs_timer"}:
        connection.execute(sql.SQL("ALTER TABLE {} DETACH PARTITION {}").format(*names(parent, day)))
    return job


def runs(connection: Connection, job: Job) -> None:
    """It is dispatched and runs to its end, whenever it is due."""
    dispatch(connection, ahead=2 * AHEAD)
    QueueEntry.objects.update(run_at=clock.now() - timedelta(days=1))
    assert job.state == JobState.QUEUED
    finish(connection, claim(connection, job, process(connection)), Completed())
    assert_sound()


def stays(connection: Connection, day: date) -> None:
    """The next rounds of upkeep keep it whole. (The first may find the dead session's lock.)"""
    wait_until(lambda: day in expire(expires(day)).kept)
    assert read_days(connection)[day].complete


def goes(connection: Connection, day: date) -> None:
    """The next rounds of upkeep drop it, and leave nothing of it."""

    def gone() -> bool:
        expire(expires(day))
        return not exists(connection, day)

    wait_until(gone)
    assert_sound()


def test_pd_05_a_day_in_the_making_is_there_whole_or_not_at_all(
    connection: Connection, mortal: Mortals, new: date
) -> None:
    trips = {}
    for number, word, _ in strikes(mortal, partial(ensure, [new]), partial(drop, connection, new)):
        trips[number] = word
        leaves = read_days(connection).get(new)
        assert leaves is None or leaves.complete
        runs(connection, schedule(due_at=bounds(new)[0]))  # its caller makes the day if need be
    made = [trip for trip in trips.values() if trip in ("CREATE", "ALTER")]
    assert made == ["CREATE", "ALTER"] * len(PARENTS)


@pytest.mark.parametrize("verb", ["ensure", "expire"])
def test_pd_01_a_day_that_was_taken_apart_is_put_together_for_its_waiting_job(
    connection: Connection, mortal: Mortals, old: date, verb: str
) -> None:
    trips, call = {}, partial(ensure, [old]) if verb == "ensure" else partial(expire, expires(old))
    for number, word, job in strikes(mortal, call, partial(taken_apart, connection, old)):
        trips[number] = word
        dispatch(connection)
        if verb == "ensure":
            ensure([old])
        stays(connection, old)
        runs(connection, job)
        goes(connection, old)
    assert list(trips.values()).count("ALTER") == len(PARENTS) + 1  # the half detached one needs two


def test_pd_03_a_day_that_is_being_dropped_goes_whole_unless_a_job_of_it_comes_back(
    connection: Connection, mortal: Mortals, old: date
) -> None:
    def prepare() -> Job:
        ensure([old])
        return ended(connection, old)

    def next_rounds(job: Job) -> None:
        leaves = read_days(connection).get(old)
        assert leaves is None or leaves.attached | leaves.pending | leaves.detached == set(PARENTS)
        came_back = verbs.retry([job.id]).changed
        dispatch(connection)
        if came_back:
            stays(connection, old)
            runs(connection, job)
        goes(connection, old)
        assert not Job.objects.filter(pk=job.pk).exists()

    trips, call = {}, partial(expire, expires(old))
    for number, word, job in strikes(mortal, call, prepare):
        trips[number] = word
        next_rounds(job)
    assert list(trips.values())[-1] == "DROP"
    detaches = [number for number, word in trips.items() if word == "ALTER"]
    for number, parent in zip(detaches, PARENTS, strict=True):
        job = prepare()
        half_detached(connection, parent, old, partial(mortal.strike, call, number, sent=True))
        next_rounds(job)
