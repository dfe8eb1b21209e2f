"""A late report never overwrites what a newer attempt wrote."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.leases import end, rescue, settle
from jobs.models import Attempt, Outcome, QueueEntry
from jobs.results import Cancelled, Claim, Completed, Released, Result, Settlement, Snoozed
from jobs.states import JobState
from tests.factories import claim, failed, finish, process
from tests.racing import Connection, assert_sound, due_job

pytestmark = pytest.mark.concurrency

RESULTS: list[Result] = [
    Completed(),
    failed(),
    failed(final=True),
    Snoozed(timedelta(hours=1)),
    Cancelled(),
    Released(),
    Released(crashed=True),
]
every_result = pytest.mark.parametrize("result", RESULTS, ids=lambda result: repr(result)[:30])


def lost_and_found(connection: Connection) -> tuple[Claim, Claim]:
    """A claim that was taken from its process, and the one that another process has on the job now."""
    job, first = due_job(), process(connection)
    stale = claim(connection, job, first)
    end(connection, [first])
    assert set(rescue(connection).fates) == {job.id}
    return stale, claim(connection, job, process(connection))


@every_result
def test_lt_03_a_report_with_an_old_token_changes_nothing_while_another_attempt_runs(
    result: Result, connection: Connection
) -> None:
    stale, fresh = lost_and_found(connection)
    before = QueueEntry.objects.values().get()
    settled = settle(connection, [Settlement(stale.held, result, None)])
    assert (settled.fates, settled.fenced) == ({}, {stale.held.job_id})
    assert QueueEntry.objects.values().get() == before
    assert not Attempt.objects.filter(due_at=stale.held.due_at).exists()
    finish(connection, fresh, Completed())
    assert_sound()


@every_result
def test_lt_01_a_report_with_an_old_token_changes_nothing_after_the_other_attempt_has_ended(
    result: Result, connection: Connection
) -> None:
    stale, fresh = lost_and_found(connection)
    finish(connection, fresh, Completed('"fresh"'))
    before = Outcome.objects.values().get(due_at=stale.held.due_at)
    assert settle(connection, [Settlement(stale.held, result, None)]).fenced == {stale.held.job_id}
    assert Outcome.objects.values().get(due_at=stale.held.due_at) == before
    assert not QueueEntry.objects.exists()
    assert_sound()


def test_a_stale_report_in_a_batch_takes_nothing_from_the_others(connection: Connection) -> None:
    stale, _ = lost_and_found(connection)
    good = claim(connection, due_job(), process(connection))
    settled = settle(connection, [Settlement(each.held, Completed(), None) for each in (stale, good)])
    assert (set(settled.fates), settled.fenced) == ({good.held.job_id}, {stale.held.job_id})
    assert_sound()


def test_a_report_that_is_sent_again_after_a_lost_reply_is_no_lost_lease(connection: Connection) -> None:
    job = due_job()
    held = claim(connection, job, process(connection))
    finish(connection, held, Completed())
    again = settle(connection, [Settlement(held.held, Completed(), None)])
    assert (again.fates, again.fenced) == ({}, set())
    assert job.state == JobState.COMPLETED
    assert_sound()


def test_a_late_report_of_a_claim_that_nobody_took_over_is_still_good(connection: Connection) -> None:
    """Its lease has expired and the rescuer was not there yet: the token alone decides."""
    job, mine = due_job(), process(connection)
    held = claim(connection, job, mine)
    end(connection, [mine])
    finish(connection, held, Completed())
    assert job.state == JobState.COMPLETED
    assert rescue(connection).fates == {}
    assert_sound()
