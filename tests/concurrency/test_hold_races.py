"""Holds while others claim, schedule and lift: nothing held starts, nothing is lost, a rate is kept by all together."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import transaction

from dispatch.holder import Holder
from jobs import clock
from jobs.clock import DatabaseClock
from jobs.holds import hold, lift
from jobs.leases import Targets, drain, park_held
from jobs.models import Hold, Job, QueueEntry
from jobs.newjob import NewJob
from tests.factories import process, take
from tests.racing import Connection, assert_sound, at_once, beside_on_own, due_job

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]


def run(work: Holder, own: Connection) -> int:
    return work.run_once(own, DatabaseClock().read(own))


def test_no_claim_that_begins_after_a_hold_takes_a_job_of_it(connection: Connection) -> None:
    mine = process(connection)
    with transaction.atomic():
        due_job()
        hold("type", "test.noop")
        due_job(queue="other")
        assert take(connection, "test.noop", mine) == []
    assert take(connection, "test.noop", mine) == []
    assert take(connection, "other", mine) == []


def test_holders_side_by_side_give_a_backlog_back_at_one_rate(connection: Connection) -> None:
    Job.objects.schedule_many([NewJob(job_type="test.noop", delay=-timedelta(seconds=1))] * 60)
    made = hold("type", "test.noop")
    now = DatabaseClock().read(connection)
    assert park_held(connection, Targets(types=["test.noop"]), now - timedelta(hours=1), now)[0] == 60
    lift(made, rate=20)
    targets = Targets(types=["test.noop"])
    drain(connection, made.pk, 20, targets, Targets())
    connection.execute("UPDATE jobs_ratebucket SET refilled_at = clock_timestamp() - interval '1 h'")
    given = at_once([lambda own: drain(own, made.pk, 20, targets, Targets())[0]] * 8)
    assert 20 <= sum(given) < 40, "what was saved up is a second's worth, and taken once"
    assert QueueEntry.objects.filter(parked=None).count() == sum(given)


def test_who_finds_another_at_a_drain_passes_on(connection: Connection) -> None:
    made = hold("type", "test.noop")
    lift(made, rate=1)
    with connection.transaction():
        connection.execute("SELECT FROM jobs_hold FOR UPDATE")
        waited = beside_on_own(lambda own: drain(own, made.pk, 1, Targets(types=["test.noop"]), Targets()))
        assert waited.result(30) == (0, set())


def test_nothing_is_left_behind_when_holds_come_and_go_beside_callers_and_holders(
    connection: Connection,
) -> None:
    rounds, feeding = 12, threading.Barrier(2)
    done = threading.Event()

    def operate(own: Connection) -> None:
        for number in range(rounds):
            feeding.wait(60)
            made = hold("type" if number % 2 else "group", "test.noop" if number % 2 else "g")
            feeding.wait(60)
            lift(made)
        done.set()

    def feed(own: Connection) -> None:
        for _ in range(rounds):
            feeding.wait(60)
            with transaction.atomic():
                Job.objects.schedule_many([NewJob(job_type="test.noop", group="g")] * 20)
                feeding.wait(60)

    def keep(own: Connection) -> None:
        work = Holder()
        while not done.is_set():
            run(work, own)

    at_once([operate, feed, keep, keep])
    work = Holder()  # as ten seconds later
    while Hold.objects.filter(drained_at=None).exists() or QueueEntry.objects.filter(parked="hold").exists():
        run(work, connection)
    assert QueueEntry.objects.filter(parked=None, run_at__lte=clock.asked()).count() == 20 * rounds
    assert_sound()
