"""The dispatcher's part in concurrency keys: the time that comes, and what was left undone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from dispatch import admitter
from dispatch.admitter import BACK, SWEEP, SWEEP_SHARE, Admitter
from jobs.clock import DatabaseClock
from jobs.conf import conf
from jobs.models import QueueEntry
from tests.keyed import admitted, allow, keyed
from tests.schema.guards_keys import ago

Connection = psycopg.Connection[Any]
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


class Boot:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def boot(monkeypatch: pytest.MonkeyPatch) -> Boot:
    made = Boot()
    monkeypatch.setattr(admitter, "boottime", made)
    return made


@pytest.fixture
def work(here: Connection, boot: Boot) -> Admitter:
    """It has just swept."""
    made = Admitter()
    assert made.run_once(here, DatabaseClock().read(here)) == 0
    return made


def run(work: Admitter, here: Connection) -> None:
    work.run_once(here, DatabaseClock().read(here))


def test_what_comes_due_is_admitted_and_what_has_no_room_waits(here: Connection, work: Admitter) -> None:
    first, second, later = keyed(), keyed(), keyed("other", delay=4 * SECOND)
    run(work, here)
    assert admitted(first, second, later) == [True, False, False]


def test_a_job_is_admitted_when_its_time_comes_and_not_before(here: Connection, work: Admitter) -> None:
    job = keyed(delay=4 * SECOND)
    now = DatabaseClock().read(here)
    work.run_once(here, now)
    assert admitted(job) == [False]
    QueueEntry.objects.update(run_at=now)
    run(work, here)
    assert admitted(job) == [True]


def test_it_sleeps_until_the_next_time_that_comes_and_no_longer_than_its_period(
    here: Connection, work: Admitter
) -> None:
    period = conf().period.total_seconds()
    assert work.period == period
    job = keyed(delay=4 * SECOND)
    work.run_once(here, job.due_at - SECOND / 4)
    assert work.period == pytest.approx(0.25)
    work.run_once(here, job.due_at - 3 * SECOND)
    assert work.period == period
    work.run_once(here, job.due_at - timedelta(microseconds=1))
    assert work.period == 0.001


def test_what_was_committed_a_little_late_is_seen(here: Connection, work: Admitter) -> None:
    job = keyed()
    ago(here, job, BACK - SECOND)
    run(work, here)
    assert admitted(job) == [True]


def test_what_was_left_undone_is_found_by_the_sweep(here: Connection, work: Admitter, boot: Boot) -> None:
    job = keyed()
    ago(here, job, HOUR)
    boot.time += SWEEP - 0.1
    run(work, here)
    assert admitted(job) == [False]
    boot.time += 0.1
    run(work, here)
    assert admitted(job) == [True]


def test_a_sweep_that_takes_long_is_made_less_often(here: Connection, work: Admitter, boot: Boot) -> None:
    work._sweeping = 2.0
    job = keyed()
    ago(here, job, HOUR)
    boot.time += 2.0 * SWEEP_SHARE - 0.1
    run(work, here)
    assert admitted(job) == [False]
    boot.time += 0.1
    run(work, here)
    assert admitted(job) == [True]


def test_after_an_interruption_it_sweeps(here: Connection, work: Admitter) -> None:
    job = keyed()
    ago(here, job, HOUR)
    work.interrupted()
    run(work, here)
    assert admitted(job) == [True]


def test_a_fresh_one_sweeps(here: Connection) -> None:
    job = keyed()
    ago(here, job, HOUR)
    run(Admitter(), here)
    assert admitted(job) == [True]


def test_a_raised_number_is_used_by_the_next_sweep(here: Connection, work: Admitter, boot: Boot) -> None:
    jobs = [keyed() for _ in range(3)]
    run(work, here)
    for job in jobs:
        ago(here, job, HOUR)
    allow(here, 2)
    boot.time += SWEEP
    run(work, here)
    assert admitted(*jobs) == [True, True, False]
