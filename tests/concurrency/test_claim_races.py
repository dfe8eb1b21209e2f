"""Claims against claims, cancels and reschedules: whoever loses writes nothing and never waits."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import psycopg
import pytest
from django.db import transaction

from dispatch.holdings import Holdings
from dispatch.slots import Slots
from dispatch.watch import Watch
from jobs import clock, verbs
from jobs.leases import Claimer, settle
from jobs.models import Job
from jobs.newjob import NewJob
from jobs.registry import registry
from jobs.results import Held, Settlement
from jobs.states import JobState
from tests.factories import dispatch, job_in, own_connection, process, take
from tests.killing import kill_point
from tests.racing import Connection, assert_sound, at_once, beside, due_job, wait_for_waiter

pytestmark = pytest.mark.concurrency
HOUR = timedelta(hours=1)


def test_of_two_claims_in_one_moment_the_second_does_not_wait_and_takes_the_rest(
    connection: Connection,
) -> None:
    for _ in range(5):
        due_job()
    with own_connection() as other:
        mine, yours = process(connection), process(other)
        with connection.transaction():
            first = take(connection, "test.noop", mine, size=3)
            second = take(other, "test.noop", yours)
            assert take(other, "test.noop", yours) == []
    assert (len(first), len(second)) == (3, 2)
    assert not {t.held.job_id for t in first} & {t.held.job_id for t in second}
    assert_sound()


def test_a_claim_that_is_rolled_back_leaves_its_entries_to_others(connection: Connection) -> None:
    job = due_job()
    with own_connection() as other:
        mine, yours = process(connection), process(other)
        with connection.transaction(force_rollback=True):
            take(connection, "test.noop", mine)
        (taken,) = take(other, "test.noop", yours)
    assert (taken.held.job_id, taken.held.attempt) == (job.id, 1)
    assert_sound()


def test_eight_claimers_of_one_backlog_take_each_entry_once(connection: Connection) -> None:
    """Each claim under a token of its own, and what is left over is still there."""
    Job.objects.schedule_many(NewJob(job_type="test.noop", tenant=f"t{n % 7}") for n in range(2000))

    def claim_all(own: Connection) -> list[list[Held]]:
        claimer = Claimer("test.noop", process(own), registry.names())
        return [[each.held for each in some] for some in iter(lambda: claimer.claim(own, 25, 25), [])]

    claims = [some for mine in at_once([claim_all] * 8) for some in mine]
    jobs = [held.job_id for some in claims for held in some]
    tokens = [{held.lease_token for held in some} for some in claims]
    assert len(jobs) == len(set(jobs))
    assert len(tokens) == len(set.union(*tokens))
    left = take(connection, "test.noop", process(connection), size=2000, free=2000)
    assert len(jobs) + len(left) == 2000
    assert_sound()


def test_a_claim_passes_over_what_is_being_rescheduled_and_leaves_it_then(connection: Connection) -> None:
    job, mine = due_job(), process(connection)
    with transaction.atomic():
        assert job.reschedule(clock.now() + HOUR).changed == 1
        assert take(connection, "test.noop", mine) == []
    assert take(connection, "test.noop", mine) == []
    assert job.state == JobState.SCHEDULED
    assert_sound()


def test_a_reschedule_waits_for_a_claim_and_then_leaves_the_running_job_alone(connection: Connection) -> None:
    job, mine = due_job(), process(connection)
    run_at = clock.now() + HOUR
    with connection.transaction():
        assert take(connection, "test.noop", mine)
        report = beside(lambda: verbs.reschedule([job.id], run_at))
        wait_for_waiter(connection)
    assert report.result(30).skipped == Counter(running=1)
    assert job.state == JobState.RUNNING
    assert_sound()


def test_a_reschedule_and_a_dispatch_of_one_timer_make_one_entry(connection: Connection) -> None:
    job = job_in(JobState.SCHEDULED, connection)
    run_at = clock.now() + HOUR
    with connection.transaction():
        assert dispatch(connection, ahead=2 * timedelta(days=1)) == 1
        report = beside(lambda: verbs.reschedule([job.id], run_at))
        wait_for_waiter(connection)
    assert report.result(30).changed == 1
    assert job.state == JobState.SCHEDULED
    assert_sound()


def test_a_claim_whose_reply_was_lost_is_given_back_after_two_looks_uncounted(connection: Connection) -> None:
    """The process does not know that it holds the entry and renews its lease for ever: nobody else would notice. Its
    claimer goes on with the memory it had."""
    job, mine = due_job(), process(connection)
    slots, given_back = Slots.create(1, 30.0), list[Settlement]()
    watch = Watch(mine, Holdings(slots), given_back.append)
    watch.reconcile(connection)  # it holds nothing: the next look for what it does not know would be far off
    claimer = Claimer("test.noop", mine, registry.names())
    with own_connection() as broken:
        claimer.looks.look(broken)
        with kill_point(broken, 0) as point, pytest.raises(psycopg.OperationalError):
            claimer.claim(broken, 5, 5)
    assert point.name.startswith("-- claim: take")
    watch.reconcile(connection)
    assert not watch.uncertain
    watch.doubt()
    watch.reconcile(connection)
    assert given_back == []  # it may be a claim that is still on its way
    watch.reconcile(connection)
    slots.close()
    assert [each.held.job_id for each in given_back] == [job.id]
    settle(connection, given_back)
    (again,) = claimer.claim(connection, 5, 5)
    assert (again.held.job_id, again.held.attempt, again.held.crashes) == (job.id, 1, 0)
    assert_sound()
