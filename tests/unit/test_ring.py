"""Marks: what a look or a claim says of a pair, and from where on the next claim goes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from jobs.leases.ring import NIL, Mark, Pair, Ring, Share, just_before

PAIR, OTHER = (1, 0), (2, 0)


def at(seconds: float) -> datetime:
    return datetime(2026, 12, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def mark(seconds: float, number: int = 0) -> Mark:
    return at(seconds), UUID(int=number)


def saw(ring: Ring, pair: Pair, seconds: float, number: int | None = None) -> None:
    """A look (without a number), a hop or a sweep found this entry."""
    ring.see(pair, 1, False, at(seconds), None if number is None else UUID(int=number))


def ready(ring: Ring, size: int = 100) -> list[Pair]:
    return [pair for share in ring.choose(size) for pair in share.pairs]


def test_a_mark_is_just_before_the_entry_that_was_seen() -> None:
    ring = Ring()
    saw(ring, PAIR, 5, 9)
    saw(ring, OTHER, 5)
    assert ring.marks == {PAIR: mark(5, 8), OTHER: mark(5)}
    assert just_before(at(5), NIL) == mark(5)


@pytest.mark.parametrize("number", [None, 1])
def test_what_lies_behind_the_mark_takes_it_back(number: int | None) -> None:
    ring = Ring()
    saw(ring, PAIR, 5, 9)
    ring.advance(PAIR, mark(7, 3))
    saw(ring, PAIR, 4, number)
    assert ring.marks[PAIR] == mark(4)


@pytest.mark.parametrize(("seconds", "number"), [(7, 4), (8, 1), (8, None)])
def test_what_lies_ahead_leaves_the_mark_alone(seconds: float, number: int | None) -> None:
    ring = Ring()
    saw(ring, PAIR, 5, 9)
    ring.advance(PAIR, mark(7, 3))
    saw(ring, PAIR, seconds, number)
    assert ring.marks[PAIR] == mark(7, 3)


def test_of_one_instant_an_entry_may_lie_behind_and_a_look_says_nothing() -> None:
    """A burst shares one run_at: each look would walk all of it again."""
    ring = Ring()
    saw(ring, PAIR, 5, 9)
    ring.advance(PAIR, mark(7, 3))
    saw(ring, PAIR, 7)
    assert ring.marks[PAIR] == mark(7, 3)
    saw(ring, PAIR, 7, 3)
    assert ring.marks[PAIR] == mark(7, 2)


def test_a_mark_that_advances_never_goes_back() -> None:
    ring = Ring()
    saw(ring, PAIR, 5)
    ring.advance(PAIR, mark(7))
    ring.advance(PAIR, mark(6))
    assert ring.marks[PAIR] == mark(7)


def test_a_floor_stays_while_its_mark_advances_and_goes_back_with_it() -> None:
    ring = Ring()
    saw(ring, PAIR, 5)
    ring.advance(PAIR, mark(7))
    assert ring.floors[PAIR] == mark(5)
    saw(ring, PAIR, 6)
    assert ring.floors[PAIR] == mark(5)
    saw(ring, PAIR, 4)
    assert (ring.marks[PAIR], ring.floors[PAIR]) == (mark(4), mark(4))


def test_the_highest_priority_is_probed_first() -> None:
    ring = Ring()
    for priority in (3, -5, 100, 0):
        saw(ring, (1, priority), 5)
    assert ring.choose(9) == [Share(1, 9, [(1, 100), (1, 3), (1, 0), (1, -5)])]


def test_a_pair_that_ran_dry_is_left_out_until_it_is_seen_again() -> None:
    ring = Ring()
    for pair in ((1, 0), (1, 7), (2, 0)):
        saw(ring, pair, 5)
    ring._cursor = 0
    ring.exhausted((1, 7))
    assert ready(ring) == [(1, 0), (2, 0)]
    ring.exhausted((1, 0))
    assert ready(ring) == [(2, 0)]
    assert (1 in ring, 2 in ring, len(ring)) == (False, True, 1)
    saw(ring, (1, 7), 6)
    assert sorted(ready(ring)) == [(1, 7), (2, 0)]
    assert ring.marks[1, 7] == mark(5)


def test_a_pair_that_nobody_knows_runs_dry_without_harm() -> None:
    ring = Ring()
    ring.exhausted(PAIR)
    assert ready(ring) == []


def test_a_tenant_that_is_passed_over_stays_away_whatever_is_seen_of_it() -> None:
    ring = Ring()
    saw(ring, PAIR, 5)
    ring.pass_over(1)
    saw(ring, (1, 7), 6)
    assert (ready(ring), len(ring)) == ([], 0)
    ring.bring_back(1)
    assert ready(ring) == [(1, 7), (1, 0)]


def test_a_tenant_that_comes_back_with_nothing_ready_takes_no_turn() -> None:
    ring = Ring()
    saw(ring, PAIR, 5)
    ring.pass_over(1)
    ring.exhausted(PAIR)
    ring.bring_back(1)
    ring.bring_back(77)
    assert ready(ring) == []
    saw(ring, PAIR, 6)
    assert ready(ring) == [PAIR]


def test_who_was_passed_over_before_it_was_seen_stays_away_too() -> None:
    ring = Ring()
    ring.pass_over(1)
    saw(ring, PAIR, 5)
    assert ready(ring) == []


def test_a_tenant_takes_one_turn_however_often_it_is_seen_or_brought_back() -> None:
    ring = Ring()
    for _ in range(3):
        saw(ring, PAIR, 5)
        ring.bring_back(1)
    assert len(ring) == 1
    assert ring.choose(9) == [Share(1, 9, [PAIR])]


def test_what_is_chosen_is_touched() -> None:
    ring = Ring()
    saw(ring, PAIR, 5)
    saw(ring, OTHER, 5)
    ring._cursor = 0
    ring.choose(1)
    assert ring.touched == {PAIR}


def test_limits_are_told_and_taken_back() -> None:
    ring = Ring()
    ring.see(PAIR, 1, True, at(5))
    assert ring.limited == {1}
    ring.see(PAIR, 1, False, at(6))
    assert ring.limited == {1}, "a look does not know of all limits"
    ring.learn(1, 1, False)
    assert ring.limited == set()


def test_a_leap_goes_on_to_what_is_known_and_never_back() -> None:
    ring = Ring()
    saw(ring, PAIR, 5, 9)
    ring.leap(PAIR, at(8), at(20))
    assert (ring.marks[PAIR], ready(ring)) == (mark(8), [PAIR])
    ring.leap(PAIR, at(7), at(20))
    assert (ring.marks[PAIR], ready(ring)) == (mark(8), [PAIR])
    assert ring.floors[PAIR] == mark(5, 8)


def test_a_leap_to_nothing_ends_at_its_moment() -> None:
    ring = Ring()
    saw(ring, PAIR, 5)
    ring.leap(PAIR, None, at(20))
    assert (ring.marks[PAIR], ready(ring)) == (mark(20), [])
