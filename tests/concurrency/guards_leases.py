"""What those guards of the leases prevent that only a second session shows: a small check that fails without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast
from uuid import uuid4

import psycopg
import pytest
from django.db import transaction

from jobs.leases import Claimer, claim, end, fetch, renew, rescue, settle
from jobs.leases.rescue import _settle_found
from jobs.leases.settle import _decide
from jobs.models import Outcome, Queue, QueueEntry, Tenant
from jobs.registry import registry
from jobs.results import Completed, Held, Settlement
from jobs.sql import load
from jobs.states import JobState
from tests.factories import failed, own_connection, process, schedule, take
from tests.mutating import Mutants
from tests.racing import Connection, beside_on_own, due_job, pid_of_django, wait_for_waiter
from tests.waiting import wait_until

LONG = 1e6


class Interrupted:
    """A connection on which something else happens once, right after a statement."""

    def __init__(self, connection: Connection, statement: str, act: Callable[[], None]) -> None:
        self._connection, self._acts = connection, {load(statement): act}

    def execute(self, statement: Any, values: Any) -> Any:
        cursor = self._connection.execute(statement, values)
        self._acts.pop(statement, lambda: None)()
        return cursor

    def transaction(self) -> Any:
        return self._connection.transaction()


def _interrupted(connection: Connection, statement: str, act: Callable[[], None]) -> Connection:
    return cast(Connection, Interrupted(connection, statement, act))


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


def _is_free(table: str, key: str, value: Any) -> bool:
    """Nobody has locked this row."""
    with own_connection() as watch:
        statement: Any = f"SELECT FROM {table} WHERE {key} = %s FOR UPDATE SKIP LOCKED"
        return watch.execute(statement, [value]).fetchone() is not None


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
        free = _is_free("jobs_process", "id", first)
    assert renewed.result(30) == {first, second}
    assert not free


# fetch and rescue


def a_day_that_was_dropped_hides_no_other(connection: Connection) -> None:
    taken, there = _two_taken(connection)
    gone = replace(
        taken, held=taken.held._replace(job_id=uuid4(), due_at=taken.held.due_at - timedelta(days=1000))
    )
    claims, missing = fetch(connection, "test.noop", [gone, there])
    assert [each.held for each in claims] == [there.held]
    assert missing == [gone]


def what_is_being_rescued_is_nobody_elses(connection: Connection) -> None:
    held, _ = _two_held(connection)
    end(connection, [held.process_id])
    with own_connection() as other:
        theirs: list[Any] = []
        mine = rescue(_interrupted(connection, "orphans", lambda: theirs.append(rescue(other).batch)))
    assert theirs == [[]]
    assert len(mine.fates) == 2


# settle


def a_settle_locks_in_the_order_of_ids(connection: Connection) -> None:
    first, second = _two_held(connection)
    batch = [Settlement(held, Completed(), None) for held in (second, first)]
    with connection.transaction():
        connection.execute("SELECT FROM jobs_queueentry WHERE job_id = %s FOR UPDATE", [second.job_id])
        settled = beside_on_own(lambda own: settle(own, batch))
        wait_for_waiter(connection)
        free = _is_free("jobs_queueentry", "job_id", first.job_id)
    assert len(settled.result(30).fates) == 2
    assert not free


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
    with own_connection() as other:
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


def a_tenant_stays_locked_until_it_has_given(connection: Connection) -> None:
    _a_limit_of_one(queue=False)
    with own_connection() as other:
        mine, yours, theirs = _claimer(connection), _claimer(other), list[Claim]()
        other.execute("BEGIN")
        meanwhile = _interrupted(connection, "lock_tenants", lambda: theirs.extend(yours.claim(other, 9, 9)))
        taken = mine.claim(meanwhile, 9, 9)
        other.execute("COMMIT")
    assert len(taken + theirs) == 1


def a_tenant_that_another_has_locked_is_passed_over_for_a_while(connection: Connection) -> None:
    _a_limit_of_one(queue=False)
    with own_connection() as other, pytest.MonkeyPatch.context() as patch, connection.transaction():
        patch.setattr(claim, "BUSY_SECONDS", (LONG, LONG))
        connection.execute("SELECT FROM jobs_tenant FOR UPDATE")
        mine = _claimer(other)
        assert mine.claim(other, 9, 9) == []
        assert (mine.retry_in() or 0.0) > LONG / 2


TOGETHER = "with connection.transaction():"

MUTANTS: Mutants = {
    a_renewal_that_waited_until_its_lease_had_passed_is_refused: [(renew, " FOR NO KEY UPDATE", "")],
    renewals_lock_in_the_order_of_ids: [(renew, "ORDER BY id", "ORDER BY id DESC")],
    a_day_that_was_dropped_hides_no_other: [
        (fetch, "UndefinedTable", "UndefinedColumn"),
        (fetch, "continue", "break"),
    ],
    what_is_being_rescued_is_nobody_elses: [(_settle_found, TOGETHER, "if True:")],
    a_settle_locks_in_the_order_of_ids: [
        (settle, "sorted(settlements, key=lambda s: s.held.job_id)", "list(settlements)")
    ],
    an_error_leaves_nothing_of_a_batch_written: [(settle, TOGETHER, "if True:")],
    a_failure_waits_for_an_open_cancel_and_obeys_it: [
        (_decide, 'load("lock_claims")', 'load("lock_claims").replace("FOR UPDATE", "")')
    ],
    a_queue_that_another_has_locked_gives_nothing: [
        (Claimer._lock, "fetchone() is not None", "fetchone() != 0")
    ],
    a_tenant_that_another_has_locked_gives_nothing: [
        (Claimer._lock, "[tenant for (tenant,) in rows]", "limited")
    ],
    a_tenant_stays_locked_until_it_has_given: [(Claimer._take, TOGETHER, "if True:")],
    a_tenant_that_another_has_locked_is_passed_over_for_a_while: [
        (Claimer._lock, "self._full[tenant] = time.monotonic() + random.uniform(*BUSY_SECONDS)", "pass"),
        (Claimer._learn, "setdefault(tenant, now + FULL_SECONDS)", "update({tenant: now})"),
    ],
}
