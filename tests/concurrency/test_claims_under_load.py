"""Claimers with memory, while others commit late, lock and roll back: nothing is lost, nothing runs twice, no limit is
exceeded. Without the hop each minute, which would find what marks had passed."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from uuid import UUID

import pytest
from django.db import transaction

from jobs.leases import Claimer, looks, settle
from jobs.models import Job, Outcome, QueueEntry, Tenant
from jobs.newjob import NewJob
from jobs.registry import registry
from jobs.results import Claim, Completed, Released, Result, Settlement
from tests.factories import failed, process
from tests.racing import Connection, assert_sound, at_once

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]
JOBS, FEEDS, TENANTS, CLAIMERS = 1200, 6, 12, 4


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks that reach back hardly further than they must."""
    for name, seconds in (("EVERY", 0.01), ("PATIENCE", 0.01), ("WIDE", 0.05), ("SWEEP", 0.1), ("HOP", 1e9)):
        monkeypatch.setattr(looks, name, seconds)
    monkeypatch.setattr(looks, "BACK", timedelta(seconds=0.02))
    monkeypatch.setattr(looks, "SPARE", timedelta(seconds=0.02))


class Ledger:
    """What runs, as the claimers saw it: from the reply of a claim until its settle begins."""

    def __init__(self, limits: dict[int, int]) -> None:
        self.limits = limits
        self.most: Counter[int] = Counter()
        self._running: Counter[int] = Counter()
        self._jobs: set[UUID] = set()
        self._completed: Counter[UUID] = Counter()
        self._claims = 0
        self._changed = threading.Condition()

    @property
    def done(self) -> bool:
        return len(self._completed) == JOBS

    def claimed(self, claims: list[Claim]) -> None:
        with self._changed:
            for each in claims:
                assert each.held.job_id not in self._jobs, "it runs already"
                self._jobs.add(each.held.job_id)
                self._running[each.tenant_id] += 1
                self.most[each.tenant_id] = max(self.most[each.tenant_id], self._running[each.tenant_id])
            self._claims += len(claims)
            self._changed.notify_all()

    def settling(self, results: list[tuple[Claim, Result]]) -> None:
        with self._changed:
            for each, result in results:
                self._jobs.discard(each.held.job_id)
                self._running[each.tenant_id] -= 1
                self._completed[each.held.job_id] += isinstance(result, Completed)
            self._completed += Counter()  # without those that have not ended
            self._changed.notify_all()

    def progress(self, claims: int) -> None:
        """Wait for so many claims, or until nothing moves any more."""
        with self._changed:
            until = self._claims + claims
            while self._claims < until and not self.done and self._changed.wait(0.1):
                pass

    def assert_kept(self) -> None:
        assert set(self._completed.values()) == {1}
        assert {
            tenant: most for tenant, most in self.most.items() if most > self.limits.get(tenant, JOBS)
        } == {}


def work(own: Connection, ledger: Ledger, chance: random.Random) -> None:
    """Claim, claim again while holding that, settle."""
    claimer = Claimer("test.noop", process(own), registry.names())
    while not ledger.done:
        held: list[Claim] = []
        for _ in range(2):
            claims = claimer.claim(own, 12, 12)
            ledger.claimed(claims)
            held += claims
        results = [(each, outcome(chance)) for each in held]
        ledger.settling(results)
        settle(own, [Settlement(each.held, result, None) for each, result in results])
        for each in held:
            claimer.settled(each.tenant_id)
        if not held:
            ledger.progress(1)


def outcome(chance: random.Random) -> Result:
    dice = chance.random()
    if dice < 0.8:
        return Completed()
    return failed(after=timedelta()) if dice < 0.9 else Released()


def feed(own: Connection, ledger: Ledger) -> None:
    """Jobs whose transaction stays open while others work."""
    for part in range(FEEDS):
        with transaction.atomic():
            Job.objects.schedule_many(new(n) for n in range(part, JOBS, FEEDS))
            ledger.progress(JOBS // FEEDS // 2)


def new(n: int) -> NewJob:
    return NewJob(job_type="test.noop", tenant=f"t{n % TENANTS}", priority=n % 3)


def sabotage(own: Connection, ledger: Ledger) -> None:
    """Lock some entries, whoever they belong to, and let go of them unchanged."""
    while not ledger.done:
        with own.transaction(force_rollback=True):
            own.execute(
                "UPDATE jobs_queueentry SET priority = priority + 1 WHERE job_id IN (SELECT job_id FROM jobs_queueentry "
                "WHERE lease_token IS NULL ORDER BY random() LIMIT 20 FOR UPDATE SKIP LOCKED)"
            )
            ledger.progress(10)
        ledger.progress(20)


@pytest.mark.parametrize("limited", [False, True])
def test_nothing_is_lost_or_run_twice_and_no_limit_is_exceeded(limited: bool) -> None:
    from jobs.tenants import tenant_ids

    ids = tenant_ids(f"t{n}" for n in range(TENANTS))
    limits = {ids[f"t{n}"]: n // 2 + 1 for n in range(0, TENANTS, 2)} if limited else {}
    for tenant_id, most in limits.items():
        Tenant.objects.filter(pk=tenant_id).update(max_running=most)
    ledger, chance = Ledger(limits), random.Random(limited)
    acts: list[Callable[[Connection], None]] = [
        partial(feed, ledger=ledger),
        partial(sabotage, ledger=ledger),
    ]
    acts += [partial(work, ledger=ledger, chance=chance) for _ in range(CLAIMERS)]
    at_once(acts, timeout=100.0)
    ledger.assert_kept()
    assert not QueueEntry.objects.exists()
    assert Outcome.objects.filter(state="completed").count() == JOBS
    assert_sound()
