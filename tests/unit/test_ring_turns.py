"""Turns: weighted round robin over the ready tenants of a queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.leases.ring import Ring
from tests.unit.test_ring import at

weights = st.lists(st.integers(1, 30), min_size=1, max_size=12)


def ring_of(*weights: int) -> Ring:
    """Tenants 1, 2, ... of these weights, with more than enough of each, the first one's turn first."""
    ring = Ring()
    for number, weight in enumerate(weights, 1):
        ring.see((number, 0), weight, False, at(0))
    ring._cursor = 0
    return ring


def chosen(ring: Ring, size: int) -> dict[int, int]:
    return {share.tenant_id: share.most for share in ring.choose(size)}


def claims(ring: Ring, size: int, number: int) -> Iterator[dict[int, int]]:
    return (chosen(ring, size) for _ in range(number))


def test_a_batch_is_shared_by_weight() -> None:
    assert chosen(ring_of(1, 1), 8) == {1: 4, 2: 4}
    assert chosen(ring_of(3, 1), 8) == {1: 6, 2: 2}


def test_nobody_has_nothing_and_nothing_is_no_batch() -> None:
    assert chosen(Ring(), 8) == {}


def test_who_is_cut_off_goes_first_next_time_for_the_rest_and_once_more_for_what_is_left() -> None:
    ring = ring_of(1, 1, 1)
    assert list(claims(ring, 8, 4)) == [
        {1: 3, 2: 3, 3: 2},
        {3: 1 + 1, 1: 3, 2: 3},
        {3: 2, 1: 3, 2: 3},
        {3: 3, 1: 3, 2: 2},
    ]


def test_who_is_alone_has_all_of_it_whatever_was_left_to_him() -> None:
    ring = ring_of(1, 1)
    assert chosen(ring, 9) == {1: 5, 2: 4}
    ring.exhausted((1, 0))
    assert chosen(ring, 9) == {2: 9}


def test_a_batch_that_ends_with_a_turn_owes_nobody() -> None:
    ring = ring_of(2, 2, 2)
    assert list(claims(ring, 4, 3)) == [{1: 2, 2: 2}, {3: 2, 1: 2}, {2: 2, 3: 2}]


def test_a_batch_smaller_than_the_number_of_tenants_goes_round() -> None:
    ring = ring_of(1, 1, 1, 1, 1)
    assert list(claims(ring, 2, 3)) == [{1: 1, 2: 1}, {3: 1, 4: 1}, {5: 1, 1: 1}]


def test_a_weight_that_fills_many_batches_is_served_whole_before_the_next_tenant() -> None:
    ring = ring_of(5, 1)
    assert list(claims(ring, 2, 4)) == [{1: 2}, {1: 2}, {1: 1, 2: 1}, {1: 2}]


def test_what_is_owed_goes_with_the_tenant_that_leaves() -> None:
    ring = ring_of(5, 1, 1)
    assert chosen(ring, 2) == {1: 2}
    ring.exhausted((1, 0))
    assert chosen(ring, 2) == {2: 1, 3: 1}
    ring.see((1, 0), 5, False, at(1))
    assert chosen(ring, 5) == {1: 5}


def test_a_new_tenant_that_comes_at_the_cursor_is_not_owed_what_another_was() -> None:
    ring = ring_of(1, 9, 1)
    assert chosen(ring, 3) == {1: 1, 2: 2}
    ring.exhausted((2, 0))
    assert chosen(ring, 1) == {3: 1}


@pytest.mark.parametrize("cursor", [0, 1, 2, 3, 4, 1000])
def test_everybody_is_found_wherever_the_cursor_is(cursor: int) -> None:
    ring = ring_of(1, 1, 1)
    ring._cursor = cursor
    assert chosen(ring, 9) == {1: 3, 2: 3, 3: 3}


def test_a_new_weight_counts_from_the_next_claim_on() -> None:
    ring = ring_of(1, 1)
    ring.learn(1, 3, False)
    assert chosen(ring, 8) == {1: 6, 2: 2}
    ring.pass_over(1)
    ring.learn(1, 1, False)
    assert chosen(ring, 8) == {2: 8}
    ring.bring_back(1)
    ring._cursor = 0
    assert chosen(ring, 8) == {1: 4, 2: 4}


def test_claimers_do_not_walk_in_step() -> None:
    first = set()
    for _ in range(40):
        ring = Ring()
        for tenant in range(1000, 1020):
            ring.see((tenant, 0), 1, False, at(0))
        first.add(ring.choose(1)[0].tenant_id)
    assert len(first) > 8


@settings(deadline=None)
@given(weights, st.integers(1, 40))
def test_no_claim_is_larger_than_asked_or_empty_or_serves_a_tenant_twice(some: list[int], size: int) -> None:
    ring = ring_of(*some)
    for _ in range(50):
        shares = ring.choose(size)
        assert 0 < sum(share.most for share in shares) <= size
        assert all(share.most > 0 for share in shares)
        assert len({share.tenant_id for share in shares}) == len(shares)


@settings(deadline=None)
@given(weights, st.integers(1, 40))
def test_each_tenant_is_served_again_within_everybodys_weight(some: list[int], size: int) -> None:
    """Within (sum of weights / batch) + 1 claims."""
    ring, waited = ring_of(*some), dict.fromkeys(range(1, len(some) + 1), 0)
    for _ in range(200):
        served = chosen(ring, size)
        waited = {tenant: 0 if tenant in served else claims + 1 for tenant, claims in waited.items()}
        assert max(waited.values()) <= sum(some) / size + 1


@settings(deadline=None)
@given(weights, st.integers(1, 40))
def test_in_the_long_run_each_tenant_has_its_share(some: list[int], size: int) -> None:
    """No two differ by more than one turn of either."""
    ring, total = ring_of(*some), Counter[int]()
    quantum = -(-size // sum(some))
    for _ in range(200):
        total.update(chosen(ring, size))
        turns = [total[tenant] / (weight * quantum) for tenant, weight in enumerate(some, 1)]
        assert max(turns) - min(turns) <= 1 + 1e-9


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6), st.integers(0, 2), st.integers(1, 5))))
def test_a_ring_keeps_count_of_its_turns_and_weights(steps: list[tuple[int, int, int, int]]) -> None:
    ring = Ring()
    for step, tenant, priority, weight in steps:
        match step:
            case 0:
                ring.see((tenant, priority), weight, False, at(0))
            case 1:
                ring.learn(tenant, weight, False)
            case 2:
                ring.exhausted((tenant, priority))
            case 3:
                ring.pass_over(tenant)
            case 4:
                ring.bring_back(tenant)
            case _:
                ring.choose(weight)
        assert ring._turns == sorted(set(ring._turns) - ring._away)
        assert set(ring._turns) == set(ring._ready) - ring._away
        assert ring._total == sum(ring._weights[tenant] for tenant in ring._turns)
