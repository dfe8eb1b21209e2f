"""The rescuer against results, renewals, cancels and a second rescuer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest
from django.db import transaction

from jobs.leases import end, renew, rescue, settle
from jobs.models import Process, QueueEntry
from jobs.report import Report
from jobs.results import Claim, Completed, Settlement
from jobs.states import JobState
from tests.factories import claim, finish, own_connection, process, take
from tests.racing import (
    Connection,
    assert_sound,
    beside_on_own,
    due_job,
    wait_for_waiter,
)
from tests.statements import Noting
from tests.waiting import wait_until

pytestmark = pytest.mark.concurrency


def orphan(connection: Connection) -> Claim:
    """A claim whose process is gone."""
    mine = process(connection)
    held = claim(connection, due_job(), mine)
    end(connection, [mine])
    return held


def test_lt_01_a_rescue_passes_over_what_is_being_settled_and_leaves_it_then(connection: Connection) -> None:
    held = orphan(connection)
    with own_connection() as rescuer:
        with connection.transaction():
            finish(connection, held, Completed())
            assert rescue(rescuer).fates == {}
        assert rescue(rescuer).fates == {}
    assert not QueueEntry.objects.exists()
    assert_sound()


def test_a_result_waits_for_a_rescue_and_is_then_fenced(connection: Connection) -> None:
    held = orphan(connection)
    with connection.transaction():
        assert set(rescue(connection).fates) == {held.held.job_id}
        late = beside_on_own(lambda own: settle(own, [Settlement(held.held, Completed(), None)]))
        wait_for_waiter(connection)
    assert late.result(30).fenced == {held.held.job_id}
    assert QueueEntry.objects.get().attempt == 0
    assert_sound()


def test_of_two_rescuers_each_entry_is_dealt_with_by_one(connection: Connection) -> None:
    held = orphan(connection)
    with own_connection() as other:
        with connection.transaction():
            assert set(rescue(connection).fates) == {held.held.job_id}
            assert rescue(other).fates == {}
        assert rescue(other).fates == {}
    assert QueueEntry.objects.get().crashes == 1
    assert_sound()


def test_a_rescue_does_not_wait_for_an_open_cancel_and_obeys_it_then(connection: Connection) -> None:
    held = orphan(connection)
    job = QueueEntry.objects.get().job
    with transaction.atomic():
        assert job.cancel() == Report(requested=1)
        assert rescue(connection).fates == {}
    assert set(rescue(connection).fates) == {held.held.job_id}
    assert job.state == JobState.CANCELLED
    assert_sound()


def test_st_01_a_claim_whose_process_row_is_gone_is_rescued(connection: Connection) -> None:
    mine = process(connection)
    held = claim(connection, due_job(), mine)
    Process.objects.filter(pk=mine).delete()
    assert set(rescue(connection).fates) == {held.held.job_id}
    assert_sound()


def test_a_lease_that_was_renewed_in_time_is_not_rescued(connection: Connection) -> None:
    mine = process(connection)
    claim(connection, due_job(), mine)
    assert renew(connection, [mine]) == {mine}
    assert rescue(connection).fates == {}
    assert_sound()


def test_a_process_that_was_found_expired_never_returns_and_claims_nothing(connection: Connection) -> None:
    from jobs.leases import ProcessExpired

    mine = process(connection, lease=timedelta(milliseconds=1))
    due_job()
    assert renew(connection, [mine]) == set()
    with pytest.raises(ProcessExpired):
        take(connection, "test.noop", mine)
    assert QueueEntry.objects.get().lease_token is None
    assert_sound()


def test_le_05_a_renewal_that_waited_for_its_row_until_the_lease_had_passed_is_refused(
    connection: Connection,
) -> None:
    """Else the process believes that it lives while the rescuer has given its jobs to another."""
    lease = timedelta(seconds=1)
    mine = process(connection, lease=lease)
    with connection.transaction():
        connection.execute("SELECT FROM jobs_process WHERE id = %s FOR UPDATE", [mine])
        renewed = beside_on_own(lambda own: renew(own, [mine]))
        wait_for_waiter(connection)
        expired = "SELECT lease_expires_at < clock_timestamp() FROM jobs_process WHERE id = %s"
        wait_until(lambda: connection.execute(expired, [mine]).fetchone() == (True,))
    assert renewed.result(30) == set()


def test_le_05_one_who_is_stopped_amid_a_renewal_until_the_rescuer_has_come_does_not_go_on_with_that_lease(
    connection: Connection,
) -> None:
    mine = process(connection)
    claim(connection, due_job(), mine)
    assert renew(connection, [mine], lease=timedelta(seconds=1)) == {mine}
    with own_connection() as rescuer:

        class Stopped(Noting):
            def execute(self, statement: Any, *values: Any, **options: Any) -> Any:
                cursor = super().execute(statement, *values, **options)
                if "UPDATE jobs_process" in statement:
                    wait_until(lambda: rescue(rescuer).fates)
                return cursor

        renew(cast(Connection, Stopped(connection)), [mine], lease=timedelta(seconds=2))
    assert renew(connection, [mine]) == set()


def test_le_05_an_open_cancel_of_its_job_does_not_hold_up_a_renewal(connection: Connection) -> None:
    mine = process(connection)
    held = claim(connection, due_job(), mine)
    with transaction.atomic():
        assert QueueEntry.objects.get(pk=held.held.job_id).job.cancel() == Report(requested=1)
        connection.execute("SET lock_timeout = '1s'")
        assert renew(connection, [mine]) == {mine}
    assert_sound()
