"""Limits under contention: never exceeded, and no slot is ever lost."""

from __future__ import annotations

import threading
from typing import cast
from uuid import UUID

import pytest
from django.db import transaction

from jobs.leases import Claimer, settle
from jobs.models import Job, Queue, QueueEntry, Tenant
from jobs.newjob import NewJob
from jobs.registry import registry
from jobs.results import Completed, Settlement
from jobs.tenants import tenant_ids
from tests.factories import own_connection, process, take
from tests.racing import Connection, assert_sound, at_once, due_job
from tests.statements import Noting

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]
JOBS, CLAIMERS = 32, 8


class Ledger:
    """How many were held at once, as the claimers saw it: a claim counts from its reply until its settle begins."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: set[UUID] = set()
        self.seen: set[UUID] = set()
        self.most = 0
        self.done = threading.Event()

    def claimed(self, ids: set[UUID]) -> None:
        with self._lock:
            assert not ids & self.seen, "claimed twice"
            self._held |= ids
            self.seen |= ids
            self.most = max(self.most, len(self._held))
            if len(self.seen) == JOBS:
                self.done.set()

    def settling(self, ids: set[UUID]) -> None:
        with self._lock:
            self._held -= ids


def work(own: Connection, ledger: Ledger) -> None:
    """Claim, claim again while holding that, settle; until everything was seen."""
    claimer = Claimer("test.noop", process(own), registry.names())
    while not ledger.done.is_set():
        held = []
        for _ in range(2):
            taken = claimer.claim(own, 10, 10)
            ledger.claimed({each.held.job_id for each in taken})
            held += taken
        ledger.settling({each.held.job_id for each in held})
        settle(own, [Settlement(each.held, Completed(), None) for each in held])
        for each in held:
            claimer.settled(each.tenant_id)
        if not held:
            ledger.done.wait(claimer.retry_in() or 0.005)


def limit(kind: str, most: int) -> None:
    if kind != "queue":
        tenant_ids(["default"])
        Tenant.objects.update(max_running=most)
    if kind != "tenant":
        Queue.objects.create(name="test.noop", max_running=most if kind == "queue" else most + 1)


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("kind", ["tenant", "queue", "tenant and queue"])
def test_cc_06_eight_claimers_never_hold_more_than_the_limit_and_lose_no_slot(kind: str, most: int) -> None:
    limit(kind, most)
    Job.objects.schedule_many([NewJob(job_type="test.noop")] * JOBS)
    ledger = Ledger()
    at_once([lambda own: work(own, ledger)] * CLAIMERS)
    assert ledger.most <= most
    assert not QueueEntry.objects.exists()
    for _ in range(most + 1):
        due_job()
    with own_connection() as connection:
        assert len(take(connection, "test.noop", process(connection))) == most
    assert_sound()


@pytest.mark.parametrize("kind", ["tenant", "queue"])
def test_a_claimer_passes_over_a_limit_that_another_has_locked_and_does_not_wait(
    kind: str, connection: Connection
) -> None:
    limit(kind, 5)
    due_job()
    with own_connection() as other:
        mine, yours = process(connection), process(other)
        with connection.transaction():
            assert len(take(connection, "test.noop", mine)) == 1
            due_job()
            claimer = Claimer("test.noop", yours, registry.names())
            assert claimer.claim(other, 5, 5) == []
            assert (claimer.retry_in() or 0) <= 0.02
        assert len(take(other, "test.noop", yours)) == 1
    assert_sound()


def test_a_lower_limit_binds_the_claims_that_begin_after_it(connection: Connection) -> None:
    """One that had looked at the tenant before it was limited gives nothing rather than too much."""
    for _ in range(5):
        due_job()
    mine = process(connection)
    claimer = Claimer("test.noop", mine, registry.names())
    claimer.looks.look(connection)
    Tenant.objects.update(max_running=1)
    noting = Noting(connection)
    assert len(claimer.claim(cast(Connection, noting), 5, 5)) == 1
    assert noting.sent == ["claim", "pipeline", "lock_tenants", "claim"]
    assert QueueEntry.objects.filter(lease_token__isnull=False).count() <= 1
    assert_sound()


def test_an_operator_who_holds_a_tenant_row_stops_only_claims_of_that_tenant(connection: Connection) -> None:
    for slug in ("edited", "other"):
        due_job(tenant=slug)
        Tenant.objects.filter(slug=slug).update(max_running=1)
    with transaction.atomic():
        Tenant.objects.filter(slug="edited").update(max_running=2)
        (taken,) = take(connection, "test.noop", process(connection))
    assert taken.tenant_id == tenant_ids(["other"])["other"]
    assert_sound()
