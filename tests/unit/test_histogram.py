from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.histogram import BOUNDS, Histogram

seconds = st.lists(st.floats(0, 200_000), min_size=1, max_size=60)


def step_of(value: float) -> tuple[float, float]:
    low = max((bound for bound in BOUNDS if bound <= value), default=0.0)
    high = min((bound for bound in BOUNDS if bound > value), default=BOUNDS[-1])
    return low, high


@given(seconds, st.floats(1, 100))
def test_a_percentile_lies_in_the_step_of_the_true_one(values: list[float], percent: float) -> None:
    found = Histogram.of(values).percentile(percent)
    assert found is not None
    ordered = sorted(values)
    index = max(0, -int(-len(values) * percent // 100) - 1)
    low, high = step_of(ordered[min(index, len(values) - 1)])
    assert low - 1e-6 <= found.total_seconds() <= high + 1e-6


@given(seconds, seconds)
def test_two_histograms_add_up_to_that_of_both(one: list[float], two: list[float]) -> None:
    assert Histogram.of(one) + Histogram.of(two) == Histogram.of(one + two)


@given(seconds)
def test_counting_the_same_twice_is_counting_it_once(values: list[float]) -> None:
    assert Histogram.of(values) | Histogram.of(values[: len(values) // 2]) == Histogram.of(values)


@given(seconds)
def test_steps_that_are_empty_at_the_end_are_not_kept(values: list[float]) -> None:
    found = Histogram.of(values)
    assert found.counts[-1] > 0
    assert found.total == len(values)


def test_of_nothing_nothing_is_said() -> None:
    assert Histogram().percentile(50) is None
    assert Histogram().share_within(timedelta(seconds=1)) is None


@pytest.mark.parametrize(("limit", "share"), [(0.005, 0.5), (1.2, 0.5), (2.0, 1.0)])
def test_a_share_is_told_to_the_bound_below(limit: float, share: float) -> None:
    found = Histogram.of([0.001, 1.3])
    assert found.share_within(timedelta(seconds=limit)) == share
