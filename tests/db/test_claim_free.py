"""Tenants at their limit: when a claimer asks whether they may run again, and from which claim on it counts."""

from __future__ import annotations

from typing import Any, cast

import psycopg
import pytest

from jobs import arrays
from jobs.leases import door, passed, settle
from jobs.leases.counts import Count
from jobs.leases.passed import BUSY_SHARE, FREE_SECONDS, IDLE_SHARE, IN_VAIN, SELDOM, STILL_FREE_SECONDS
from jobs.models import QueueEntry, Tenant
from jobs.results import Completed, Settlement
from tests.db.test_claim_fairness import backlog, by_tenant, claimer
from tests.statements import Noting
from tests.unit.looking import TIME

Connection = psycopg.Connection[Any]


@pytest.fixture(autouse=True)
def _time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "time", TIME)
    monkeypatch.setattr(passed, "time", TIME)


class Full:
    """A claimer that knows tenants at their limit of one, and what it has claimed of each."""

    def __init__(self, here: Connection, *slugs: str) -> None:
        self.here, self.tenant = here, backlog(here, dict.fromkeys(slugs, 3))
        Tenant.objects.update(max_running=1)
        self.claimer = claimer(here)
        self.held = {each.tenant_id: each.held for each in self.claimer.claim(here, 9, 9)}
        assert self.claim() == {}
        assert self.claimer.waiting

    def claim(self, seconds: float = 0.0) -> dict[int, int]:
        """What it claims of whom after so long."""
        TIME.now += seconds
        noting = Noting(self.here)
        claimed = self.claimer.claim(cast(Connection, noting), 9, 9)
        self.asked = "free" in noting.sent
        return dict(by_tenant(claimed))

    def claim_when_asked_again(self, seconds: float = FREE_SECONDS) -> dict[int, int]:
        """What it claims once it has heard twice that there is a slot."""
        assert self.claim(seconds) == {}
        assert self.asked
        assert self.claim(STILL_FREE_SECONDS / 2) == {}
        assert not self.asked
        return self.claim(STILL_FREE_SECONDS / 2 + 0.001)

    def end(self, slug: str) -> int:
        """A job of this tenant ends, as if another process had settled it; returns the tenant."""
        tenant = self.tenant[slug]
        settle(self.here, [Settlement(self.held[tenant], Completed(), None)])
        return tenant


def test_who_has_a_free_slot_is_found_within_a_moment(here: Connection) -> None:
    full = Full(here, "a", "b")
    tenant = full.end("b")
    assert full.claim() == {}
    assert not full.asked
    assert full.claim_when_asked_again() == {tenant: 1}
    assert full.asked


def test_a_slot_that_is_filled_at_once_is_left_to_who_fills_it(here: Connection) -> None:
    """The process of the job that ended claims the next: twenty others would come in vain."""
    full = Full(here, "a")
    other = claimer(here)
    for _ in range(2):
        tenant = full.end("a")
        assert full.claim(SELDOM * FREE_SECONDS + 0.001) == {}
        assert full.asked
        (next_one,) = other.claim(here, 1, 1)
        full.held[tenant] = next_one.held
        assert full.claim(STILL_FREE_SECONDS + 0.001) == {}
        assert full.asked
        other.settled(tenant)


def test_who_has_none_is_asked_for_again_a_moment_later(here: Connection) -> None:
    full = Full(here, "a", "b")
    for seconds, asked in ((FREE_SECONDS, True), (FREE_SECONDS / 2, False), (FREE_SECONDS, True)):
        assert full.claim(seconds) == {}
        assert full.asked is asked
    assert full.claimer.retry_in() == pytest.approx(FREE_SECONDS)


def test_who_is_asked_for_in_vain_is_asked_for_more_and_more_seldom(here: Connection) -> None:
    full = Full(here, "a")
    for _ in range(IN_VAIN):
        assert full.claim(FREE_SECONDS + 0.001) == {}
        assert full.asked
    waits = []
    for _ in range(8):
        waits.append(round((full.claimer.retry_in() or 0) / FREE_SECONDS))
        full.claim(waits[-1] * FREE_SECONDS + 0.001)
        assert full.asked
    assert waits == [1, 2, 4, 8, 16, 16, 16, 16]
    tenant = full.end("a")
    assert full.claim_when_asked_again(SELDOM * FREE_SECONDS + 0.001) == {tenant: 1}
    assert full.claim() == {}
    assert full.claimer.retry_in() == pytest.approx(SELDOM / 2 * FREE_SECONDS)


def test_an_own_settle_needs_no_question(here: Connection) -> None:
    full = Full(here, "a", "b")
    tenant = full.end("a")
    full.claimer.settled(tenant)
    assert full.claimer.waiting
    assert full.claim() == {tenant: 1}
    assert not full.asked


def test_an_own_settle_of_one_that_is_not_full_is_not_noted(here: Connection) -> None:
    mine = claimer(here)
    mine.settled(1)
    assert not mine.waiting


@pytest.mark.parametrize("limit", [None, 2])
def test_a_limit_that_was_raised_or_lifted_frees(here: Connection, limit: int | None) -> None:
    full = Full(here, "a")
    Tenant.objects.update(max_running=limit)
    assert full.claim_when_asked_again() == {full.tenant["a"]: 1 if limit else 2}


def test_a_tenant_whose_row_is_gone_has_no_limit(here: Connection) -> None:
    full = Full(here, "a")
    here.execute("DELETE FROM jobs_tenant")
    assert full.claim_when_asked_again() == {full.tenant["a"]: 2}


@pytest.mark.parametrize(("busy", "share"), [(False, IDLE_SHARE), (True, BUSY_SHARE)])
def test_a_question_that_takes_long_is_asked_seldom(here: Connection, busy: bool, share: int) -> None:
    full = Full(here, "a")
    full.claimer.passed._asking = 1.0
    if busy:
        backlog(here, {"other": 9})
        full.claimer.looks.look(here)
    for seconds, asked in ((share - 0.5, False), (1.0, True)):
        TIME.now += seconds
        noting = Noting(here)
        full.claimer._bring_back(cast(Connection, noting))
        assert noting.sent == ["free"] * asked
    assert full.claimer.passed._asking == 0.0


def test_a_question_counts_from_the_oldest_lease_known(here: Connection) -> None:
    """What is older would be dead rows: here it is not, so that the answer tells."""
    full = Full(here, "a")
    full.claimer.counts.of[full.tenant["a"]].oldest = 1 + max(_numbers())
    full.claimer._bring_back(here)
    for known in (0, 0, 1):
        assert len(full.claimer.ring) == known
        TIME.now += STILL_FREE_SECONDS
        full.claimer._bring_back(here)
    assert len(full.claimer.ring) == 1


@pytest.mark.parametrize("kind", ["tenant", "queue"])
def test_a_claim_counts_from_the_oldest_lease_known(here: Connection, kind: str) -> None:
    tenant = backlog(here, {"a": 5})["a"]
    mine = claimer(here)
    _limit(kind, 1)
    while not mine.claim(here, 1, 1):
        pass
    count = mine.counts.of[tenant] if kind == "tenant" else mine.counts.queue
    assert count
    assert mine.claim(here, 1, 1) == []
    count.oldest = 1 + max(_numbers())
    mine.settled(tenant)
    assert len(mine.claim(here, 1, 1)) == 1


def test_what_was_learnt_of_a_limit_is_trusted_when_it_is_proven() -> None:
    """Who has just become limited may have claims in flight that took no lock."""
    count = Count(look=3)
    assert count.oldest == 0
    for proven, oldest in ((2, 0), (3, 0), (4, 50), (3, 0)):
        count.told(50, proven)
        assert count.oldest == oldest


def _limit(kind: str, most: int) -> None:
    from jobs.models import Queue

    if kind == "tenant":
        Tenant.objects.update(max_running=most)
    else:
        Queue.objects.create(name="test.noop", max_running=most)


def _numbers() -> list[int]:
    return [entry.claim_no or 0 for entry in QueueEntry.objects.filter(lease_token__isnull=False)]


def asked_for(full: Full) -> bytes:
    """Which tenants its next claim asks for."""
    TIME.now += STILL_FREE_SECONDS + 0.001
    noting = Noting(full.here)
    full.claimer.claim(cast(Connection, noting), 9, 9)
    data: bytes = noting.given["free"]["tenants"].data
    return data


def test_who_had_a_slot_is_asked_for_alone_and_soon(here: Connection) -> None:
    full = Full(here, "a", "b", "c")
    for _ in range(IN_VAIN + 4):
        full.claim(SELDOM * FREE_SECONDS + 0.001)
    tenant = full.end("b")
    assert full.claim(SELDOM * FREE_SECONDS + 0.001) == {}
    assert full.claimer.retry_in() == pytest.approx(STILL_FREE_SECONDS)
    assert asked_for(full) == arrays.int8s([tenant]).data


def test_who_had_a_slot_and_has_settled_since_is_not_asked_for_alone(here: Connection) -> None:
    full = Full(here, "a", "b")
    tenant = full.end("b")
    assert full.claim(FREE_SECONDS + 0.001) == {}
    full.claimer.settled(tenant)
    assert full.claim() == {tenant: 1}
    assert len(asked_for(full)) == len(arrays.int8s([1, 2]).data)
