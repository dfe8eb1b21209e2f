"""Floors: from where on a sweep looks for what claims have left behind, and what is forgotten."""

from __future__ import annotations

import pytest

from jobs.leases.ring import Pair, Ring
from tests.unit.test_ring import OTHER, PAIR, at, mark, ready, saw


def probed(*pairs: Pair) -> Ring:
    """A ring whose pairs were probed up to 7."""
    ring = Ring()
    for pair in pairs:
        saw(ring, pair, 5)
    ring.choose(100)
    for pair in pairs:
        ring.advance(pair, mark(7))
    return ring


def test_the_first_proof_copies_the_marks_of_what_was_touched() -> None:
    ring = probed(PAIR)
    saw(ring, OTHER, 5)
    assert ring.prove({}) == {PAIR: mark(7)}
    assert ring.touched == set()
    assert ring.floors == {PAIR: mark(5), OTHER: mark(5)}


def test_copied_marks_are_floors_after_the_next_proof() -> None:
    ring = probed(PAIR)
    copied = ring.prove({})
    ring.advance(PAIR, mark(9))
    assert ring.prove(copied) == {}
    assert ring.floors == {PAIR: mark(7)}
    assert ring.marks == {PAIR: mark(9)}


def test_what_is_touched_again_is_copied_again() -> None:
    ring = probed(PAIR)
    copied = ring.prove({})
    ready(ring)
    ring.advance(PAIR, mark(9))
    assert ring.prove(copied) == {PAIR: mark(9)}
    assert ring.floors == {PAIR: mark(7)}


@pytest.mark.parametrize("back", [6, 4])
def test_a_mark_that_was_taken_back_meanwhile_is_the_floor(back: int) -> None:
    ring = probed(PAIR)
    copied = ring.prove({})
    saw(ring, PAIR, back)
    ring.prove(copied)
    assert ring.floors == {PAIR: mark(back)}


def test_a_pair_that_ran_dry_and_was_proven_is_forgotten() -> None:
    ring = probed(PAIR, OTHER)
    ring.learn(1, 3, True)
    ring.exhausted(PAIR)
    copied = ring.prove({})
    assert PAIR in ring.marks, "what a claim skipped may still come back"
    ring.prove(copied)
    assert (ring.marks, ring.floors) == ({OTHER: mark(7)}, {OTHER: mark(7)})
    assert (ring.limited, ring._weights) == (set(), {2: 1})
    ring.see(PAIR, 1, False, at(8))
    assert ring.marks[PAIR] == mark(8)


def test_a_pair_that_was_touched_since_is_not_forgotten() -> None:
    ring = probed(PAIR)
    copied = ring.prove({})
    ready(ring)
    ring.exhausted(PAIR)
    assert ring.prove(copied) == {PAIR: mark(7)}
    assert ring.floors == {PAIR: mark(7)}


def test_a_tenant_that_is_away_is_remembered() -> None:
    ring = probed(PAIR)
    ring.learn(1, 3, True)
    ring.exhausted(PAIR)
    ring.pass_over(1)
    ring.prove(ring.prove({}))
    assert (ring.limited, ring._weights) == ({1}, {1: 3})


def test_a_tenant_of_which_another_pair_is_ready_is_remembered() -> None:
    ring = probed(PAIR, (1, 7))
    ring.learn(1, 3, True)
    ring.exhausted(PAIR)
    ring.prove(ring.prove({}))
    assert set(ring.marks) == {(1, 7)}
    assert (ring.limited, ring._weights) == ({1}, {1: 3})


def test_a_pair_of_a_tenant_that_is_passed_over_is_not_forgotten() -> None:
    ring = probed(PAIR)
    ring.pass_over(1)
    ring.prove(ring.prove({}))
    ring.bring_back(1)
    assert ready(ring) == [PAIR]
    assert ring.floors == {PAIR: mark(7)}
