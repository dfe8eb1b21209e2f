"""What those guards of the leases prevent that only a second session shows: a small check that fails without it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

import psycopg
import pytest
from django.db import transaction

from jobs.ids import EPOCH, new_id
from jobs.leases import Claimer, end, fetch, renew, rescue, settle
from jobs.leases.rescue import _settle_found
from jobs.leases.settle import _decide, _fenced, _lock_and_write
from jobs.models import Outcome, Queue, QueueEntry, Tenant
from jobs.registry import registry
from jobs.results import Claim, Completed, Held, Settlement
from jobs.states import JobState
from tests.concurrency import test_claim_changes as changes
from tests.concurrency import test_limit_locks as locks
from tests.factories import failed, own_connection, process, schedule, take
from tests.mutating import Mutants
from tests.racing import Connection, beside_on_own, due_job, is_free, pid_of_django, wait_for_waiter
from tests.statements import Noting
from tests.waiting import wait_until


def _impatient() -> AbstractContextManager[Connection]:
    """A connection that fails rather than waits for a lock."""
    connection = own_connection()
    connection.execute("SET lock_timeout = '1s'")
    return connection


def _claimer(connection: Connection) -> Claimer:
    return Claimer("test.noop", process(connection), registry.names())


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
    mine = process(connection, lease=lease)
    with connection.transaction():
        connection.execute("SELECT FROM jobs_process WHERE id = %s FOR UPDATE", [mine])
        renewed = beside_on_own(lambda own: renew(own, [mine]))
        wait_for_waiter(connection)
        began_in_time = _is_alive(connection, mine)
        wait_until(lambda: not _is_alive(connection, mine))
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


# limits of one


def _a_limit_of_one(*, queue: bool) -> None:
    """Before two due jobs."""
    due_job()
    due_job()
    if queue:
        Queue.objects.create(name="test.noop", max_running=1)
    else:
        Tenant.objects.update(max_running=1)


def _one_is_held_while_another_claims(connection: Connection) -> None:
    with _impatient() as other:
        mine, yours = _claimer(connection), _claimer(other)
        with connection.transaction():
            assert len(mine.claim(connection, 9, 9)) == 1
            assert yours.claim(other, 9, 9) == []
    assert QueueEntry.objects.filter(lease_token__isnull=False).count() == 1


def a_queue_that_another_has_locked_gives_nothing(connection: Connection) -> None:
    _a_limit_of_one(queue=True)
    _one_is_held_while_another_claims(connection)


def a_tenant_that_another_has_locked_gives_nothing(connection: Connection) -> None:
    _a_limit_of_one(queue=False)
    _one_is_held_while_another_claims(connection)


def what_another_is_claiming_is_not_waited_for(connection: Connection) -> None:
    for _ in range(2):
        due_job()
    with _impatient() as other:
        mine, yours = _claimer(connection), _claimer(other)
        with connection.transaction():
            assert len(mine.claim(connection, 1, 1)) == 1
            assert len(yours.claim(other, 9, 9)) == 1


def a_count_is_not_begun_at_a_claim_that_had_no_lock(connection: Connection) -> None:
    """Its own number is younger than what the others hold."""
    for queue in (False, True):
        QueueEntry.objects.all().delete()
        Tenant.objects.update(max_running=None)
        _a_limit_of_one(queue=queue)
        with own_connection() as other:
            mine, yours = _claimer(connection), _claimer(other)
            mine.claim(connection, 1, 1)  # it learns of the limit, and comes late from now on
            QueueEntry.objects.update(lease_token=None, process_id=None)
            assert len(yours.claim(other, 1, 1)) == 1
            mine.looks.proven = 10**6
            with other.transaction():
                lock_all(other)
                assert mine.claim(connection, 1, 1) == []
            mine._busy = dict.fromkeys(mine._busy, 0.0)
            mine.settled(0)
            for _ in range(2):
                assert mine.claim(connection, 1, 1) == []
                mine._busy = dict.fromkeys(mine._busy, 0.0)


def lock_all(other: Connection) -> None:
    other.execute("SELECT FROM jobs_tenant FOR UPDATE")
    other.execute("SELECT FROM jobs_queue FOR UPDATE")


def what_was_changed_meanwhile_is_claimed_by_the_same_call(connection: Connection) -> None:
    with pytest.MonkeyPatch.context() as patch:
        changes.gate(patch)
        changes.test_one_that_was_only_touched_is_taken_by_the_same_call(_claimer(connection))


TOGETHER = "with connection.transaction():"
LOCKS, WAITS = "FOR NO KEY UPDATE SKIP LOCKED", "FOR NO KEY UPDATE"


def _without(statement: str, text: str, instead: str = "") -> tuple[Callable[..., Any], str, str]:
    """A claimer that sends this statement without a part of it."""
    return Claimer._send, statement, f"{statement}.replace({text!r}, {instead!r})"


MUTANTS: Mutants = {
    a_renewal_that_waited_until_its_lease_had_passed_is_refused: [(renew, " FOR NO KEY UPDATE", "")],
    renewals_lock_in_the_order_of_ids: [(renew, "ORDER BY id", "ORDER BY id DESC")],
    a_day_that_was_dropped_hides_no_other: [
        (fetch, "UndefinedTable", "UndefinedColumn"),
        (fetch, "continue", "break"),
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
    a_queue_that_another_has_locked_gives_nothing: [
        _without('load("lock_queue")', LOCKS),
        _without('load("lock_queue")', LOCKS, WAITS),
        _without('for_day("claim", day)', "WHEN NOT lock.held THEN 0"),
    ],
    a_tenant_that_another_has_locked_gives_nothing: [
        _without('load("lock_tenants")', LOCKS),
        _without('load("lock_tenants")', LOCKS, WAITS),
        _without('for_day("claim", day)', "WHEN NOT lock.held THEN 0"),
    ],
    what_another_is_claiming_is_not_waited_for: [
        _without('for_day("claim", day)', "FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
        _without('for_day("claim", day)', "FOR UPDATE SKIP LOCKED"),
    ],
    a_count_is_not_begun_at_a_claim_that_had_no_lock: [
        (Claimer._learn, "if held:", "if True:"),
        (Claimer._learn_queue, "0 if full else oldest", "oldest"),
    ],
    locks.test_who_does_not_get_the_queue_locks_no_tenant: [
        (Claimer._take, '"queue_limited": self._queue_count is not None', '"queue_limited": False'),
        _without('load("lock_tenants")', "NOT %(queue_limited)s OR ", "NOT %(queue_limited)s OR true OR "),
    ],
    locks.test_who_gets_the_queue_and_not_the_tenant_claims_nothing_of_it: [
        (Claimer._learn, "if limited and not held:", "if False:"),
        (
            Claimer._learn,
            "# noqa: S311\n            self.ring.pass_over(tenant_id)",
            "# noqa: S311",
        ),
        (Claimer._learn, "self._busy[tenant_id] = time.monotonic() + random", "_ = random"),
    ],
    what_was_changed_meanwhile_is_claimed_by_the_same_call: [
        (Claimer._read, "if stuck and (claims or not free):", "if stuck:"),
    ],
}
