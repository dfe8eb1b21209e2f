"""What those guards of the leases prevent that only a second session shows: a small check that fails without it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast
from uuid import UUID

import psycopg
import pytest
from django.db import transaction

from jobs.ids import EPOCH, new_id
from jobs.leases import end, fetch, renew, rescue, settle
from jobs.leases.fetch import _bring
from jobs.leases.rescue import _settle_found
from jobs.leases.settle import _decide, _fenced, _lock_and_write
from jobs.models import Outcome
from jobs.results import Claim, Completed, Held, Settlement
from jobs.states import JobState
from tests.factories import failed, own_connection, process, schedule, take
from tests.mutating import Mutants
from tests.racing import Connection, beside_on_own, due_job, is_free, pid_of_django, wait_for_waiter
from tests.statements import Noting
from tests.waiting import wait_until


def _two_taken(connection: Connection) -> list[Claim]:
    """By one process, of two days, in the order of their ids."""
    schedule(delay=-timedelta(days=1, seconds=1))
    due_job()
    taken = take(connection, "test.noop", process(connection))
    return sorted(taken, key=lambda each: each.held.job_id)


def _two_held(connection: Connection) -> tuple[Held, Held]:
    first, second = _two_taken(connection)
    return first.held, second.held


# processes


def _is_alive(connection: Connection, process_id: int) -> bool:
    alive = "SELECT lease_expires_at > clock_timestamp() FROM jobs_process WHERE id = %s"
    return connection.execute(alive, [process_id]).fetchone() == (True,)


def a_renewal_that_waited_until_its_lease_had_passed_is_refused(
    connection: Connection, lease: timedelta = timedelta(seconds=0.2)
) -> None:
    """For one row of several: none is judged before all are locked."""
    mine = [process(connection, lease=lease) for _ in range(2)]
    with connection.transaction():
        connection.execute("SELECT FROM jobs_process WHERE id = %s FOR UPDATE", [mine[1]])
        renewed = beside_on_own(lambda own: renew(own, mine))
        wait_for_waiter(connection)
        began_in_time = _is_alive(connection, mine[0])
        wait_until(lambda: not _is_alive(connection, mine[1]))
    assert renewed.result(30) == set()
    if not began_in_time:  # it would have been refused anyhow
        a_renewal_that_waited_until_its_lease_had_passed_is_refused(connection, 2 * lease)


def renewals_lock_in_the_order_of_ids(connection: Connection) -> None:
    first, second = process(connection), process(connection)
    with connection.transaction():
        connection.execute("SELECT FROM jobs_process WHERE id = %s FOR UPDATE", [second])
        renewed = beside_on_own(lambda own: renew(own, [second, first]))
        wait_for_waiter(connection)
        free = is_free("jobs_process", "id", first)
    assert renewed.result(30) == {first, second}
    assert not free


# fetch and rescue


def a_day_that_was_dropped_hides_no_other(connection: Connection) -> None:
    taken, there = (each._replace(payload=None) for each in _two_taken(connection))
    gone = taken._replace(held=taken.held._replace(job_id=_long_gone()))
    claims, missing = fetch(connection, [gone, there])
    assert [each.held for each in claims] == [there.held]
    assert missing == [gone]


def _long_gone() -> UUID:
    """A job of a day that has no leaves any more."""
    return new_id(EPOCH + timedelta(days=1000))


def what_is_being_rescued_is_nobody_elses(connection: Connection) -> None:
    held, _ = _two_held(connection)
    end(connection, [held.process_id])
    with own_connection() as other:
        theirs: list[Any] = []

        class Meanwhile(Noting):
            """Another rescues right after those to be rescued were found."""

            def execute(self, statement: Any, values: Any = None, **options: Any) -> Any:
                cursor = super().execute(statement, values, **options)
                if self.sent == ["orphans", "orphans"]:
                    theirs.append(rescue(other).batch)
                return cursor

        mine = rescue(cast(Connection, Meanwhile(connection)))
    assert [list(some) for some in theirs] == [[]]
    assert len(mine.fates) == 2


# settle


def a_settle_locks_in_the_order_of_ids(connection: Connection) -> None:
    _locks_in_order(connection, *_two_held(connection))


def a_settle_of_one_day_locks_in_the_order_of_ids(connection: Connection) -> None:
    for _ in range(2):
        due_job()
    taken = take(connection, "test.noop", process(connection))
    _locks_in_order(connection, *sorted(each.held for each in taken))


def _locks_in_order(connection: Connection, first: Held, second: Held) -> None:
    batch = [Settlement(held, Completed(), None) for held in (second, first)]
    with connection.transaction():
        connection.execute("SELECT FROM jobs_queueentry WHERE job_id = %s FOR UPDATE", [second.job_id])
        settled = beside_on_own(lambda own: settle(own, batch))
        wait_for_waiter(connection)
        free = is_free("jobs_queueentry", "job_id", first.job_id)
    assert len(settled.result(30).fates) == 2
    assert not free


def a_result_of_a_day_that_is_gone_is_fenced(connection: Connection) -> None:
    held = _two_held(connection)[0]._replace(job_id=_long_gone())
    for result in (Completed(), failed()):
        assert settle(connection, [Settlement(held, result, None)]).fenced == {held.job_id}


def an_error_leaves_nothing_of_a_batch_written(connection: Connection) -> None:
    first, second = _two_held(connection)
    batch = [Settlement(first, Completed(), None), Settlement(second, Completed("no JSON"), None)]
    with pytest.raises(psycopg.DataError):
        settle(connection, batch)
    assert not Outcome.objects.exists()


def a_failure_waits_for_an_open_cancel_and_obeys_it(connection: Connection) -> None:
    job = due_job()
    (taken,) = take(connection, "test.noop", process(connection))
    with transaction.atomic():
        job.cancel()
        settled = beside_on_own(lambda own: settle(own, [Settlement(taken.held, failed(), None)]))
        wait_for_waiter(pid_of_django())
    settled.result(30)
    assert job.state == JobState.CANCELLED


TOGETHER = "with connection.transaction():"

MUTANTS: Mutants = {
    a_renewal_that_waited_until_its_lease_had_passed_is_refused: [
        (renew, " FOR NO KEY UPDATE", ""),
        (renew, "(SELECT max(clock_timestamp()) FROM mine)", "clock_timestamp()"),
    ],
    renewals_lock_in_the_order_of_ids: [(renew, "ORDER BY id", "ORDER BY id DESC")],
    a_day_that_was_dropped_hides_no_other: [
        (_bring, "UndefinedTable", "UndefinedColumn"),
    ],
    what_is_being_rescued_is_nobody_elses: [(_settle_found, TOGETHER, "if True:")],
    a_settle_locks_in_the_order_of_ids: [
        (settle, "sorted(settlements, key=lambda s: s.held.job_id.int)", "list(settlements)")
    ],
    a_settle_of_one_day_locks_in_the_order_of_ids: [
        (settle, "sorted(settlements, key=lambda s: s.held.job_id.int)", "list(settlements)")
    ],
    an_error_leaves_nothing_of_a_batch_written: [(_lock_and_write, TOGETHER, "if True:")],
    a_result_of_a_day_that_is_gone_is_fenced: [
        (settle, "UndefinedTable", "UndefinedColumn"),
        (_fenced, "UndefinedTable", "UndefinedColumn"),
    ],
    a_failure_waits_for_an_open_cancel_and_obeys_it: [
        (_decide, 'load("lock_claims")', 'load("lock_claims").replace("FOR UPDATE", "")')
    ],
}
