"""Cancel against everything that moves a job: it never misses one in motion, and what has ended stays ended."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import transaction

from jobs import verbs
from jobs.leases import settle
from jobs.models import Attempt, Job, QueueEntry
from jobs.newjob import NewJob
from jobs.report import Report
from jobs.results import Cancelled, Completed, Released, Result, Settlement, Snoozed
from jobs.states import JobState
from tests.factories import claim, dispatch, failed, finish, job_in, process, take
from tests.racing import (
    Connection,
    assert_sound,
    beside,
    beside_on_own,
    due_job,
    pid_of_django,
    wait_for_waiter,
)

pytestmark = pytest.mark.concurrency
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

ENDS: dict[str, tuple[Result, JobState]] = {
    "completed": (Completed(), JobState.COMPLETED),
    "failed for good": (failed(final=True), JobState.FAILED),
    "cancelled": (Cancelled(), JobState.CANCELLED),
}
GOES_ON: dict[str, Result] = {
    "failed attempt": failed(),
    "snoozed": Snoozed(HOUR),
    "released": Released(),
    "released by a crash": Released(crashed=True),
}
by_kind = pytest.mark.parametrize("kind", [*ENDS, *GOES_ON])


def result_of(kind: str) -> Result:
    return ENDS[kind][0] if kind in ENDS else GOES_ON[kind]


def test_a_cancel_waits_for_a_dispatch_and_then_finds_the_entry(connection: Connection) -> None:
    job = job_in(JobState.SCHEDULED, connection)
    with connection.transaction():
        assert dispatch(connection, ahead=2 * DAY) == 1
        report = beside(lambda: verbs.cancel([job.id]))
        wait_for_waiter(connection)
    assert report.result(30).changed == 1
    assert job.state == JobState.CANCELLED
    assert_sound()


def test_a_cancel_takes_the_timer_of_a_dispatch_that_was_rolled_back(connection: Connection) -> None:
    job = job_in(JobState.SCHEDULED, connection)
    with connection.transaction(force_rollback=True):
        assert dispatch(connection, ahead=2 * DAY) == 1
        report = beside(lambda: verbs.cancel([job.id]))
        wait_for_waiter(connection)
    assert report.result(30).changed == 1
    assert job.state == JobState.CANCELLED
    assert_sound()


def test_a_dispatch_passes_over_what_is_being_cancelled(connection: Connection) -> None:
    job = job_in(JobState.SCHEDULED, connection)
    with transaction.atomic():
        assert job.cancel().changed == 1
        assert dispatch(connection, ahead=2 * DAY) == 0
    assert dispatch(connection, ahead=2 * DAY) == 0
    assert not QueueEntry.objects.exists()
    assert_sound()


def test_a_cancel_waits_for_a_claim_and_then_flags_the_running_job(connection: Connection) -> None:
    job, mine = due_job(), process(connection)
    with connection.transaction():
        assert take(connection, "test.noop", mine)
        report = beside(lambda: verbs.cancel([job.id]))
        wait_for_waiter(connection)
    assert report.result(30) == Report(requested=1)
    assert QueueEntry.objects.get().cancel_requested
    assert_sound()


def test_a_claim_passes_over_what_is_being_cancelled(connection: Connection) -> None:
    job, mine = due_job(), process(connection)
    with transaction.atomic():
        assert job.cancel().changed == 1
        assert take(connection, "test.noop", mine) == []
    assert take(connection, "test.noop", mine) == []
    assert job.state == JobState.CANCELLED
    assert_sound()


@by_kind
def test_ca_01_a_result_that_comes_after_the_cancel_obeys_it_unless_it_is_completion(
    kind: str, connection: Connection
) -> None:
    job = due_job()
    held = claim(connection, job, process(connection))
    with transaction.atomic():
        assert job.cancel().requested == 1
        settled = beside_on_own(lambda own: finish(own, held, result_of(kind)))
        wait_for_waiter(pid_of_django())
    settled.result(30)
    assert job.state == (JobState.COMPLETED if kind == "completed" else JobState.CANCELLED)
    assert not QueueEntry.objects.exists()
    assert_sound()


@by_kind
def test_ca_01_a_cancel_that_comes_after_a_result_stops_what_would_go_on_and_leaves_what_has_ended(
    kind: str, connection: Connection
) -> None:
    job = due_job()
    held = claim(connection, job, process(connection))
    with connection.transaction():
        finish(connection, held, result_of(kind))
        report = beside(lambda: verbs.cancel([job.id]))
        wait_for_waiter(connection)
    if kind in ENDS:
        state = ENDS[kind][1]
        assert report.result(30) == Report(skipped=Counter({state.value: 1}))
    else:
        state = JobState.CANCELLED
        assert report.result(30) == Report(changed=1)
    assert job.state == state
    assert Attempt.objects.filter(due_at=job.due_at).count() == (kind.startswith("failed"))
    assert_sound()


@pytest.mark.parametrize("state", [JobState.SCHEDULED, JobState.QUEUED])
def test_of_two_cancels_the_second_says_that_the_job_has_ended(
    state: JobState, connection: Connection
) -> None:
    job = job_in(state, connection)
    with transaction.atomic():
        assert job.cancel().changed == 1
        second = beside(lambda: verbs.cancel([job.id]))
        wait_for_waiter(pid_of_django())
    assert second.result(30) == Report(skipped=Counter(cancelled=1))
    assert_sound()


def test_cl_05_a_bulk_cancel_and_a_settle_of_the_same_jobs_in_opposite_order_do_not_deadlock(
    connection: Connection,
) -> None:
    """Both stop at the lock of a job in the middle: had they come from opposite ends, each would now have what the
    other needs."""
    ids = sorted(
        each for each, _ in Job.objects.schedule_many([NewJob(job_type="test.noop", delay=-HOUR)] * 100)
    )
    held = {each.held.job_id: each.held for each in take(connection, "test.noop", process(connection))}

    def settle_backwards(own: Connection) -> set[UUID]:
        backwards = [Settlement(held[job_id], Completed(), None) for job_id in reversed(ids)]
        return set(settle(own, backwards).fates)

    with connection.transaction():
        connection.execute("SELECT FROM jobs_queueentry WHERE job_id = %s FOR UPDATE", [ids[50]])
        cancelled = beside(lambda: verbs.cancel(ids[::-1]))
        wait_for_waiter(connection)
        settled = beside_on_own(settle_backwards)
        wait_for_waiter(connection, 2)
    assert cancelled.result(30).requested == 100
    assert settled.result(30) == set(ids)
    assert_sound()
