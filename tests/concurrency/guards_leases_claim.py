"""What those guards of claims prevent that only a second session shows: a small check that fails without it. Who found
something locked does not try again by himself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from jobs.leases import Claimer
from jobs.leases.passed import Passed
from jobs.models import Queue, QueueEntry, Tenant
from jobs.registry import registry
from tests.concurrency import test_claim_changes as changes
from tests.concurrency import test_limit_locks as locks
from tests.factories import own_connection, process
from tests.mutating import Mutants
from tests.racing import Connection, due_job


def _impatient() -> AbstractContextManager[Connection]:
    """A connection that fails rather than waits for a lock."""
    connection = own_connection()
    connection.execute("SET lock_timeout = '1s'")
    return connection


def _claimer(connection: Connection) -> Claimer:
    return Claimer("test.noop", process(connection), registry.names())


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
            mine.passed.busy = dict.fromkeys(mine.passed.busy, 0.0)
            mine.settled(0)
            for _ in range(2):
                assert mine.claim(connection, 1, 1) == []
                mine.passed.busy = dict.fromkeys(mine.passed.busy, 0.0)


def lock_all(other: Connection) -> None:
    other.execute("SELECT FROM jobs_tenant FOR UPDATE")
    other.execute("SELECT FROM jobs_queue FOR UPDATE")


def what_was_changed_meanwhile_is_claimed_by_the_same_call(connection: Connection) -> None:
    with pytest.MonkeyPatch.context() as patch:
        changes.gate(patch)
        changes.test_one_that_was_only_touched_is_taken_by_the_same_call(_claimer(connection))


LOCKS, WAITS = "FOR NO KEY UPDATE SKIP LOCKED", "FOR NO KEY UPDATE"


def _without(statement: str, text: str, instead: str = "") -> tuple[Callable[..., Any], str, str]:
    """A claimer that sends this statement without a part of it."""
    return Claimer._send, statement, f"{statement}.replace({text!r}, {instead!r})"


MUTANTS: Mutants = {
    a_queue_that_another_has_locked_gives_nothing: [
        _without('load("lock_queue")', LOCKS),
        _without('load("lock_queue")', LOCKS, WAITS),
        _without(
            'for_day("claim", day, not locks)',
            "WHEN limited.so AND NOT lock.held OR drain.unlocked THEN 0",
        ),
    ],
    a_tenant_that_another_has_locked_gives_nothing: [
        _without('load("lock_tenants")', LOCKS),
        _without('load("lock_tenants")', LOCKS, WAITS),
        _without('for_day("claim", day, not locks)', "WHEN NOT rule.held THEN 0"),
    ],
    what_another_is_claiming_is_not_waited_for: [
        _without('for_day("claim", day, not locks)', "FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
        _without('for_day("claim", day, not locks)', "FOR UPDATE SKIP LOCKED"),
    ],
    a_count_is_not_begun_at_a_claim_that_had_no_lock: [
        _without(
            'for_day("claim", day, not locks)',
            "CASE WHEN counted.so THEN running.oldest ELSE 0 END AS oldest",
            "running.oldest AS oldest",
        ),
    ],
    locks.test_who_does_not_get_the_queue_locks_no_tenant: [
        (Claimer._take, '"queue_limited": self.counts.queue is not None', '"queue_limited": False'),
        _without('load("lock_tenants")', "NOT %(queue_limited)s OR ", "NOT %(queue_limited)s OR true OR "),
    ],
    locks.test_who_gets_the_queue_and_not_the_tenant_claims_nothing_of_it: [
        (Claimer._learn, "if limited and not held and wait != NEVER:", "if False:"),
        (
            Passed.locked,
            "self.ring.pass_over(tenant_id)",
            "pass",
        ),
        (Passed.locked, "self.busy[tenant_id] = time.monotonic() + random", "_ = random"),
    ],
    what_was_changed_meanwhile_is_claimed_by_the_same_call: [
        (Claimer._learn_all, "if reply.stuck and (reply.claims or not free):", "if reply.stuck:"),
    ],
}
