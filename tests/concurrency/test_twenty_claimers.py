"""Twenty claimers at once, under every kind of limit and while an operator changes them: what they held and when, by their
own notes, is never more than was allowed."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, defaultdict
from datetime import timedelta
from functools import partial

import pytest

from jobs import clock
from jobs.leases import Claimer, may_relay, relay, settle
from jobs.models import Hold, Job, Queue, QueueEntry, Tenant, TenantQueueLimit
from jobs.newjob import NewJob
from jobs.registry import registry
from jobs.results import Claim, Completed, Settlement
from jobs.tenants import tenant_ids
from tests.factories import process
from tests.racing import Connection, assert_sound, at_once
from tests.waiting import wait_until

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]
CLAIMERS, EACH = 20, 25


class Ledger:
    """By tenant: how many were held at once and when they were claimed. A claim counts from its reply until its settle
    begins, so that it never counts for longer than in the database."""

    def __init__(self, total: int) -> None:
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.most_of_all = 0
        self.starts: dict[str, list[float]] = defaultdict(list)
        self.left = total
        self.relays = 0
        self.done = threading.Event()

    def claimed(self, claims: list[Claim], asked: float) -> None:
        with self._lock:
            for claim in claims:
                self._held[claim.tenant] += 1
                self.most[claim.tenant] = max(self.most[claim.tenant], self._held[claim.tenant])
                self.starts[claim.tenant].append(asked)
            self.most_of_all = max(self.most_of_all, self._held.total())
            self.left -= len(claims)
            if not self.left:
                self.done.set()

    def settling(self, claims: list[Claim]) -> None:
        with self._lock:
            self._held.subtract(claim.tenant for claim in claims)


def work(own: Connection, ledger: Ledger) -> None:
    claimer = Claimer("test.noop", process(own), registry.names())
    while not ledger.done.is_set():
        asked = time.monotonic()
        held = claimer.claim(own, 10, 10)
        ledger.claimed(held, asked)
        if not held:
            ledger.done.wait(claimer.retry_in() or 0.005)
        while held:
            ledger.done.wait(0.002)
            ledger.settling(held)
            held = end(own, claimer, held, ledger)


def end(own: Connection, claimer: Claimer, held: list[Claim], ledger: Ledger) -> list[Claim]:
    """Settle them; returns who was started in their places."""
    started: list[Claim] = []
    for tenant_id in {each.tenant_id for each in held}:
        ended = [Settlement(each.held, Completed(), None) for each in held if each.tenant_id == tenant_id]
        asked = time.monotonic()
        relayed = relay(own, claimer, tenant_id, ended) if may_relay(claimer, tenant_id, ended) else None
        if relayed is None:
            settle(own, ended)
            claimer.settled(tenant_id)
            continue
        ledger.claimed(relayed.claims, asked)
        ledger.relays += 1
        started += relayed.claims
        if len(relayed.claims) < len(ended):
            claimer.settled(tenant_id)
    return started


def scheduled(tenants: dict[str, dict[str, int]]) -> Ledger:
    """A backlog of each of these, under these limits."""
    ids = tenant_ids(tenants)
    for slug, limits in tenants.items():
        Tenant.objects.filter(pk=ids[slug]).update(**{k: v for k, v in limits.items() if k != "here"})
        if "here" in limits:
            TenantQueueLimit.objects.create(
                tenant_id=ids[slug], queue="test.noop", max_running=limits["here"]
            )
    new = [NewJob(job_type="test.noop", tenant=slug) for slug in tenants for _ in range(EACH)]
    Job.objects.schedule_many(new)
    return Ledger(len(new))


def test_no_limit_is_exceeded_by_a_single_job_and_no_slot_is_lost() -> None:
    tenants = {
        "one": {"max_running": 1},
        "three": {"max_running": 3},
        "two here": {"here": 2},
        "both": {"max_running": 4, "here": 3},
        "free": {},
    }
    ledger = scheduled(tenants)
    Queue.objects.create(name="test.noop", max_running=9)
    at_once([lambda own: work(own, ledger)] * CLAIMERS)
    assert ledger.left == 0
    for slug, limits in tenants.items():
        assert ledger.most[slug] <= min(limits.values(), default=9), slug
    assert ledger.most_of_all <= 9
    assert not QueueEntry.objects.exists()
    assert_sound()


def test_no_rate_is_exceeded_by_a_single_start() -> None:
    """A start is noted when its claim was asked for, before the bucket was read: so long intervals are no excuse."""
    ledger = scheduled({"rated": {"rate": 40, "burst": 3}, "free": {}})
    begun = time.monotonic()
    at_once([lambda own: work(own, ledger)] * CLAIMERS)
    assert ledger.left == 0
    starts = sorted(ledger.starts["rated"])
    took = time.monotonic() - begun
    assert took >= (EACH - 3) / 40, "more started than the bucket had"
    ends = sorted(starts)
    for first in range(0, EACH - 8, 4):
        span = ends[-1] - ends[first] + 0.5
        assert EACH - first <= 3 + math.ceil(40 * span)
    assert_sound()


def test_limits_and_holds_that_change_meanwhile_bind_the_claims_after_them() -> None:
    ledger = scheduled({"changed": {"max_running": 4}, "other": {"max_running": 2}})
    broken: list[str] = []

    def operate(own: Connection) -> None:
        for most in (1, 3, 0, 2):
            Tenant.objects.filter(slug="changed").update(max_running=most)
            hold = Hold.objects.create(scope="all", since=clock.now() - timedelta(seconds=1))
            ledger.done.wait(0.1)  # claims that were on their way have come back
            before = ledger.left
            ledger.done.wait(0.1)
            if ledger.left != before:
                broken.append(f"{before - ledger.left} were claimed inside a hold")
            hold.delete()
            ledger.done.wait(0.05)
        Tenant.objects.filter(slug="changed").update(max_running=2)

    at_once([*[lambda own: work(own, ledger)] * CLAIMERS, operate])
    assert broken == []
    assert ledger.left == 0
    assert ledger.most["changed"] <= 4
    assert ledger.most["other"] <= 2
    assert_sound()


def test_places_that_are_passed_on_are_no_more_than_the_limit() -> None:
    """Whatever it is lowered to meanwhile: what starts in the place of another never makes it more."""
    ledger = scheduled(
        {"one": {"max_running": 1}, "three": {"max_running": 3}, "lowered": {"max_running": 6}}
    )
    lowered = tenant_ids(["lowered"])["lowered"]
    broken: list[int] = []

    def running() -> int:
        return QueueEntry.objects.filter(tenant_id=lowered, lease_token__isnull=False).count()

    def fits(most: int) -> bool:
        return running() <= most

    def lower(_own: Connection) -> None:
        for most in (4, 2, 1):
            Tenant.objects.filter(pk=lowered).update(max_running=most)
            wait_until(partial(fits, most), what="the end of those above the limit")
            for _ in range(20):
                if (found := running()) > most:
                    broken.append(found)

    at_once([*[lambda own: work(own, ledger)] * CLAIMERS, lower])
    assert broken == []
    assert ledger.left == 0
    assert ledger.relays > 0
    assert [ledger.most[slug] for slug in ("one", "three")] == [1, 3]
    assert ledger.most["lowered"] <= 6
    assert_sound()
