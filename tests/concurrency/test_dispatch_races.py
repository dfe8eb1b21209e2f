"""Dispatchers side by side: each timer becomes one entry, whoever is there."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dispatch.dispatcher import Dispatcher
from jobs import clock
from jobs.models import Job, QueueEntry, Timer
from jobs.newjob import NewJob
from tests.factories import dispatch, own_connection, schedule
from tests.racing import Connection, assert_sound, at_once

pytestmark = pytest.mark.concurrency
DAY = timedelta(days=1)


def test_of_two_dispatches_in_one_moment_the_second_moves_nothing_and_does_not_wait(
    connection: Connection,
) -> None:
    schedule(delay=DAY)
    with own_connection() as other:
        with connection.transaction():
            assert dispatch(connection, ahead=2 * DAY) == 1
            assert dispatch(other, ahead=2 * DAY) == 0
        assert dispatch(other, ahead=2 * DAY) == 0
    assert QueueEntry.objects.count() == 1
    assert_sound()


def test_a_dispatch_that_is_rolled_back_leaves_its_timers_to_others(connection: Connection) -> None:
    schedule(delay=DAY)
    with own_connection() as other:
        with connection.transaction(force_rollback=True):
            assert dispatch(connection, ahead=2 * DAY) == 1
        assert dispatch(other, ahead=2 * DAY) == 1
    assert_sound()


def test_twenty_dispatchers_move_each_of_ten_thousand_jobs_once(connection: Connection) -> None:
    """Over two days, in small batches, so that they meet all the time."""
    ids = {
        job_id
        for job_id, _ in Job.objects.schedule_many(
            NewJob(job_type="test.noop", delay=DAY + timedelta(seconds=n * 8.64)) for n in range(10_000)
        )
    }
    now = clock.now() + 3 * DAY

    def dispatch_all(own: Connection) -> int:
        dispatcher, moved = Dispatcher(), 0
        dispatcher.batch = 50
        while count := dispatcher.run_once(own, now):
            moved += count
        return moved

    moved = at_once([dispatch_all] * 20)
    rest = Dispatcher().run_once(connection, now)  # what each of them saw locked by another at its end
    assert sum(moved) + rest == 10_000
    assert set(QueueEntry.objects.values_list("job_id", flat=True)) == ids
    assert not Timer.objects.filter(due_at__gt=clock.now() - DAY).exists()
    assert_sound()


def test_a_timer_that_is_committed_late_behind_the_others_is_dispatched_all_the_same(
    connection: Connection,
) -> None:
    """Its transaction was open while later ones were moved: no mark or bound has passed it by."""
    from django.db import transaction

    dispatcher = Dispatcher()
    with transaction.atomic():
        early = schedule(delay=DAY)
        now = early.due_at
        with own_connection() as other:
            assert dispatcher.run_once(other, now) == 0
    assert dispatcher.run_once(connection, now) == 1
    assert QueueEntry.objects.get().job_id == early.id
    assert_sound()
