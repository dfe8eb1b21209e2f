"""Relays: which results go to the thread that claims, and that none is lost on the way."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from dispatch.holdings import Holdings
from dispatch.relays import Relays
from dispatch.slots import Slots
from dispatch.wakeup import Wakeup
from jobs.results import Claim, Completed, Held, Settlement

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass
class Bench:
    holdings: Holdings = field(default_factory=lambda: Holdings(Slots.create(9, 30.0)))
    settled: list[Settlement] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.wakeup = Wakeup()
        self.relays = Relays(self.holdings, self.wakeup, self.settled.append)

    def ended(
        self, tenant_id: int = 1, queue: str = "q", *, limited: bool = True, known: bool = True
    ) -> Settlement:
        held = Held(uuid4(), uuid4(), 1, "t", 1, 5, 0)
        claim = Claim(held, tenant_id, "acme", queue, 0, NOW, None, limited, "{}")
        if known:
            self.holdings.add(claim)
        return Settlement(held, Completed(), NOW)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_what_ends_under_a_limit_is_handed_over_and_wakes(bench: Bench) -> None:
    one = bench.ended()
    bench.relays.put(one)
    assert bench.settled == []
    assert os.read(bench.wakeup._read, 9) == b"x"
    assert bench.relays.take() == (("q", 1), [one])
    assert bench.relays.take() is None


def test_everything_else_is_the_settlers(bench: Bench) -> None:
    others = [
        bench.ended(limited=False),
        bench.ended(known=False),
        bench.ended()._replace(result=Completed('"a result"')),
    ]
    for each in others:
        bench.relays.put(each)
    assert bench.settled == others
    assert bench.relays.take() is None


def test_each_tenants_are_taken_by_themselves(bench: Bench) -> None:
    owners = [("q", 1), ("q", 2), ("r", 1), ("q", 1), ("q", 2)]
    for queue, tenant_id in owners:
        bench.relays.put(bench.ended(tenant_id, queue))
    taken = {}
    while (found := bench.relays.take()) is not None:
        taken[found[0]] = len(found[1])
    assert taken == {("q", 1): 2, ("q", 2): 2, ("r", 1): 1}


def test_what_was_forgotten_meanwhile_is_the_settlers(bench: Bench) -> None:
    one, other = bench.ended(), bench.ended()
    for each in (one, other):
        bench.relays.put(each)
    holding = bench.holdings.of(one.held)
    assert holding
    bench.holdings.forget(holding)
    assert bench.relays.take() == (("q", 1), [other])
    assert bench.settled == [one]


def test_all_can_be_given_back(bench: Bench) -> None:
    some = [bench.ended(n) for n in range(3)]
    for each in some:
        bench.relays.put(each)
    bench.relays.give_all_back()
    assert bench.settled == some
    assert bench.relays.take() is None
