"""An operator's retry against other operators, results and cancels: one more run, never two."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import transaction

from jobs import verbs
from jobs.leases import settle
from jobs.models import QueueEntry
from jobs.report import Report
from jobs.results import Completed, Settlement
from jobs.states import JobState
from tests.factories import claim, failed, finish, job_in, process
from tests.racing import Connection, assert_sound, beside, due_job, pid_of_django, wait_for_waiter

pytestmark = pytest.mark.concurrency


def test_rr_01_of_two_operators_who_retry_a_job_the_second_changes_nothing(connection: Connection) -> None:
    job = job_in(JobState.FAILED, connection)
    with transaction.atomic():
        assert job.retry().changed == 1
        second = beside(lambda: verbs.retry([job.id]))
        wait_for_waiter(pid_of_django())
    assert second.result(30) == Report(skipped=Counter({"not ended": 1}))
    assert QueueEntry.objects.count() == 1
    assert_sound()


def test_rr_01_a_retry_before_the_result_is_committed_is_refused_and_after_it_works(
    connection: Connection,
) -> None:
    job = due_job()
    held = claim(connection, job, process(connection))
    with connection.transaction():
        finish(connection, held, failed(final=True))
        assert verbs.retry([job.id]) == Report(skipped=Counter({"not ended": 1}))
    assert verbs.retry([job.id]).changed == 1
    assert_sound()


def test_a_retry_that_is_rolled_back_leaves_the_job_to_the_one_who_waited(connection: Connection) -> None:
    job = job_in(JobState.CANCELLED, connection)
    with transaction.atomic():
        assert job.retry().changed == 1
        second = beside(lambda: verbs.retry([job.id]))
        wait_for_waiter(pid_of_django())
        transaction.set_rollback(True)
    assert second.result(30).changed == 1
    assert_sound()


def test_a_cancel_waits_for_a_retry_and_ends_the_job_again(connection: Connection) -> None:
    """While it looks in the queue the entry is not there yet, and then the outcome is gone: it starts over."""
    job = job_in(JobState.FAILED, connection)
    with transaction.atomic():
        assert job.retry().changed == 1
        with connection.transaction():
            connection.execute("SELECT FROM jobs_outcome WHERE job_id = %s", [job.id])
            report = beside(lambda: verbs.cancel([job.id]))
            # A cancel reads the old outcome and does not wait: the job has ended as far as anybody can know.
            assert report.result(30) == Report(skipped=Counter(failed=1))
    assert verbs.cancel([job.id]).changed == 1
    assert job.state == JobState.CANCELLED
    assert_sound()


def test_the_attempt_that_was_retried_cannot_settle_again(connection: Connection) -> None:
    """Its report was sent once more after a lost reply, and meanwhile an operator has sent the job off again."""
    job = due_job(max_attempts=1)
    held = claim(connection, job, process(connection))
    finish(connection, held, failed())
    assert job.retry().changed == 1
    late = settle(connection, [Settlement(held.held, Completed(), None)])
    assert late.fates == {}
    assert late.fenced == {job.id}
    entry = QueueEntry.objects.get()
    assert (entry.attempt, entry.max_attempts) == (1, 2)
    assert_sound()
