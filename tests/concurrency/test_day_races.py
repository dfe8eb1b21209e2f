"""Days that are made and dropped beside callers who use them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
from django.db import connections, transaction

from jobs import clock, partitions, verbs
from jobs.models import Job, Outcome
from jobs.partitions import bounds, day_of, ensure, expire, read_days
from jobs.report import Report
from jobs.results import Completed
from jobs.states import JobState
from tests.factories import claim, failed, finish, process, schedule
from tests.racing import Connection, assert_sound, beside, beside_on_own, pid_of_django, wait_for_waiter
from tests.waiting import wait_until

pytestmark = pytest.mark.concurrency

OLD, RETENTION = timedelta(days=50), timedelta(days=60)


@pytest.fixture
def old(connection: Connection, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[date]:
    """A day long past that is kept for ten more days, and may get jobs."""
    monkeypatch.setattr(import_module("jobs.partitions.expire"), "LONG_TRANSACTION", timedelta(minutes=5))
    settings.SCHEDULER = {"retention": RETENTION}
    day = day_of(clock.now() - OLD)
    ensure([day])
    yield day
    drop(connection, day)


def drop(connection: Connection, day: date) -> None:
    connections["default"].close()
    for parent in partitions.PARENTS:
        connection.execute(f'DROP TABLE IF EXISTS "{parent}__{day:%Y_%m_%d}"')


def later(day: date) -> datetime:
    """A time at which this day has just become too old."""
    return bounds(day)[1] + RETENTION


def ended(connection: Connection, day: date) -> Job:
    job = schedule(due_at=bounds(day)[0] + timedelta(hours=12))
    finish(connection, claim(connection, job, process(connection)), failed(final=True))
    return job


def test_a_day_whose_jobs_have_ended_is_dropped_and_one_with_a_waiting_job_is_not(
    connection: Connection, old: date
) -> None:
    job = ended(connection, old)
    waiting = schedule(due_at=job.due_at)
    assert list(expire(later(old)).kept) == [old]
    finish(connection, claim(connection, waiting, process(connection)), Completed())
    assert expire(later(old)).dropped == [old]
    assert not Job.objects.filter(pk=job.pk).exists()
    assert_sound()


def test_an_expiry_waits_for_an_open_retry_and_then_keeps_the_day(connection: Connection, old: date) -> None:
    """Its first look saw no unfinished job: the look after the detach sees the entry, and the day is put together."""
    job = ended(connection, old)
    with transaction.atomic():
        assert job.retry().changed == 1
        future = beside(lambda: expire(later(old)))
        wait_for_waiter(pid_of_django())
    report = future.result(60)
    assert (report.dropped, list(report.kept)) == ([], [old])
    assert read_days(connection)[old].complete
    assert job.state == JobState.QUEUED
    assert_sound()


def test_a_retry_while_its_day_is_being_dropped_finds_nothing(connection: Connection, old: date) -> None:
    """The outcome leaf is detached first: whoever comes then changes nothing."""
    job = ended(connection, old)
    with transaction.atomic():
        # holds up the second detach: that of the attempts
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT count(*) FROM jobs_attempt WHERE due_at = %s", [job.due_at])
        future = beside(lambda: expire(later(old)))
        wait_for_waiter(pid_of_django())
        wait_until(lambda: "jobs_outcome" not in read_days(connection)[old].attached)
        report = beside(lambda: verbs.retry([job.id])).result(30)
        assert report == Report(skipped=Counter({"not found": 1}))
    assert future.result(60).dropped == [old]
    assert not Outcome.objects.filter(due_at=job.due_at).exists()
    assert_sound()


def test_an_expiry_waits_for_an_open_schedule_into_the_day_and_then_keeps_it(
    connection: Connection, old: date
) -> None:
    with transaction.atomic():
        job = schedule(due_at=bounds(old)[0])
        future = beside(lambda: expire(later(old)))
        wait_for_waiter(pid_of_django())
    report = future.result(60)
    assert (report.dropped, list(report.kept)) == ([], [old])
    assert job.state == JobState.QUEUED
    assert_sound()


def test_pd_05_of_two_maintainers_the_second_returns_at_once(connection: Connection, old: date) -> None:
    ended(connection, old)
    with transaction.atomic():
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT count(*) FROM jobs_outcome WHERE due_at = %s", [bounds(old)[0]])
        first = beside(lambda: expire(later(old)))
        wait_for_waiter(pid_of_django())
        second = beside(lambda: expire(later(old))).result(30)
        assert (second.dropped, second.kept, second.blocked) == ([], {}, {})
    assert first.result(60).dropped == [old]


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ"])
def test_a_job_for_a_day_that_does_not_exist_yet_can_be_scheduled_in_an_open_transaction(
    isolation: str, connection: Connection
) -> None:
    """The day is made on another connection beside the caller's writes, and he sees it all the same."""
    far = clock.now() + timedelta(days=200)
    assert day_of(far) not in read_days(connection)
    try:
        with transaction.atomic():
            with connections["default"].cursor() as cursor:
                cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
            near = schedule(delay=timedelta(days=1))
            assert schedule(due_at=far).was_created
            assert Job.objects.filter(pk=near.pk).exists()
        states = Job.objects.with_state(far - timedelta(days=1), far + timedelta(days=1))
        assert [job.state for job in states] == [JobState.SCHEDULED]
        assert_sound()
    finally:
        drop(connection, day_of(far))


def test_twenty_callers_who_need_the_same_new_day_make_it_once(connection: Connection) -> None:
    far = clock.now() + timedelta(days=201)
    try:
        futures = [beside_on_own(lambda own: schedule(due_at=far)) for _ in range(20)]
        assert len({future.result(60).id for future in futures}) == 20
        assert read_days(connection)[day_of(far)].complete
        assert_sound()
    finally:
        drop(connection, day_of(far))
