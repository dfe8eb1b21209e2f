"""What a claim locks for a limit, and what it makes of a lock that another has."""

from __future__ import annotations

from typing import Any, cast

import pytest

from jobs.leases import Claimer, passed
from jobs.models import Queue, QueueEntry, Tenant
from jobs.registry import registry
from tests.factories import own_connection, process
from tests.racing import Connection, due_job, is_free
from tests.statements import Noting

pytestmark = pytest.mark.concurrency
LONG = 1e6


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who found something locked does not try again by himself."""
    monkeypatch.setattr(passed, "BUSY_SECONDS", (LONG, LONG))


def limited(*, queue: int | None = None, tenant: int | None = None) -> None:
    """Five due jobs under these limits."""
    for _ in range(5):
        due_job()
    Tenant.objects.update(max_running=tenant)
    if queue is not None:
        Queue.objects.create(name="test.noop", max_running=queue)


def informed(connection: Connection) -> Claimer:
    """A claimer that has learnt of the limits by a claim of one."""
    claimer = Claimer("test.noop", process(connection), registry.names())
    assert len(claimer.claim(connection, 1, 1)) == 1
    return claimer


def lock(other: Connection, table: str) -> None:
    statement: Any = f"SELECT FROM {table} FOR UPDATE"
    other.execute(statement)


def running() -> int:
    return QueueEntry.objects.filter(lease_token__isnull=False).count()


def test_who_does_not_get_the_queue_locks_no_tenant(connection: Connection) -> None:
    limited(queue=4, tenant=4)
    claimer = informed(connection)
    noting = Noting(connection)
    with own_connection() as other, other.transaction(), connection.transaction():
        lock(other, "jobs_queue")
        assert claimer.claim(cast(Connection, noting), 3, 3) == []
        assert noting.sent[-3:] == ["lock_queue", "lock_tenants", "claim"]
        assert is_free("jobs_tenant", "slug", "default")
    assert running() == 1


def test_who_gets_the_queue_and_not_the_tenant_claims_nothing_of_it(connection: Connection) -> None:
    limited(queue=4, tenant=4)
    claimer = informed(connection)
    noting = Noting(connection)
    with own_connection() as other, other.transaction():
        lock(other, "jobs_tenant")
        assert claimer.claim(cast(Connection, noting), 3, 3) == []
        assert (claimer.retry_in() or 0.0) > LONG / 2
    assert noting.sent.count("claim") == 1, "it is passed over for a while"
    assert running() == 1


def test_the_locks_are_kept_until_the_claim_is_committed(connection: Connection) -> None:
    limited(queue=4, tenant=4)
    claimer = informed(connection)
    with connection.transaction():
        assert len(claimer.claim(connection, 2, 2)) == 2
        assert not is_free("jobs_queue", "name", "test.noop")
        assert not is_free("jobs_tenant", "slug", "default")
    assert is_free("jobs_queue", "name", "test.noop")
    assert is_free("jobs_tenant", "slug", "default")


def test_what_was_locked_for_one_claim_does_not_count_in_the_next(connection: Connection) -> None:
    """The settings by which the claim learns of its locks end with its transaction."""
    limited(tenant=3)
    claimer = informed(connection)
    assert len(claimer.claim(connection, 1, 1)) == 1
    with own_connection() as other, other.transaction():
        lock(other, "jobs_tenant")
        assert claimer.claim(connection, 1, 1) == []
    assert running() == 2
