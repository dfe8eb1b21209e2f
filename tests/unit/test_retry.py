from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest_django import Settings

from jobs.errors import NotConfigured
from jobs.retry import Backoff, default_backoff

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


def test_the_ceiling_doubles_from_the_base_up_to_the_cap() -> None:
    backoff = Backoff(base=15 * SECOND, cap=6 * HOUR)
    assert [backoff.ceiling(n) // SECOND for n in (1, 2, 3, 4, 11)] == [15, 30, 60, 120, 15360]
    assert backoff.ceiling(12) == backoff.ceiling(13) == 6 * HOUR


def test_without_jitter_the_delay_is_the_ceiling() -> None:
    assert Backoff.exponential(SECOND, cap=HOUR, factor=3, jitter="none").delay(3) == 9 * SECOND


def test_full_jitter_spreads_over_everything_up_to_the_ceiling() -> None:
    backoff, rng = Backoff(base=16 * SECOND, cap=HOUR), random.Random(1)
    delays = sorted(backoff.delay(1, rng) for _ in range(1000))
    assert timedelta() <= delays[0] < SECOND
    assert 15 * SECOND < delays[-1] <= 16 * SECOND
    assert 7 * SECOND < delays[500] < 9 * SECOND


def test_the_same_seed_gives_the_same_delay() -> None:
    backoff = Backoff(base=SECOND, cap=HOUR)
    assert backoff.delay(5, random.Random(3)) == backoff.delay(5, random.Random(3))


@pytest.mark.parametrize("attempt", [1200, 32767, 2**31, 10**400])
def test_ld_06_a_huge_attempt_number_waits_for_the_cap(attempt: int) -> None:
    for cap in (HOUR, timedelta.max):
        for factor in (1.5, 2, 10**9):
            assert Backoff(base=SECOND, cap=cap, factor=factor, jitter="none").delay(attempt) == cap
    assert Backoff.constant(SECOND).delay(attempt) == SECOND
    assert Backoff.constant(timedelta()).delay(attempt) == timedelta()
    assert Backoff.sequence([SECOND, HOUR]).delay(attempt) == HOUR


@settings(derandomize=True, max_examples=300)
@given(
    st.integers(-5, 40_000),
    st.timedeltas(min_value=timedelta()),
    st.timedeltas(min_value=timedelta()),
    st.floats(1, 1e308),
    st.integers(),
)
def test_ld_06_no_delay_is_negative_or_above_the_cap(
    attempt: int, base: timedelta, cap: timedelta, factor: float, seed: int
) -> None:
    delay = Backoff(base=base, cap=cap, factor=factor).delay(attempt, random.Random(seed))
    assert timedelta() <= delay <= cap


def test_a_sequence_gives_its_delays_in_turn_and_repeats_the_last() -> None:
    backoff = Backoff.sequence([SECOND, 5 * SECOND, HOUR])
    assert [backoff.delay(n) for n in (1, 2, 3, 4)] == [SECOND, 5 * SECOND, HOUR, HOUR]


def test_a_constant_backoff_always_waits_the_same() -> None:
    assert {Backoff.constant(SECOND).delay(n) for n in range(1, 50)} == {SECOND}


@pytest.mark.parametrize(
    "arguments",
    [
        {"base": -SECOND, "cap": HOUR},
        {"base": SECOND, "cap": -HOUR},
        {"base": 15, "cap": HOUR},
        {"base": SECOND, "cap": HOUR, "factor": 0.5},
        {"base": SECOND, "cap": HOUR, "factor": float("inf")},
        {"base": SECOND, "cap": HOUR, "jitter": "some"},
        {"base": SECOND, "cap": HOUR, "steps": (SECOND, -SECOND)},
    ],
)
def test_wrong_values_are_named(arguments: dict[str, Any]) -> None:
    with pytest.raises(NotConfigured, match="back-off"):
        Backoff(**arguments)


def test_an_empty_sequence_is_refused() -> None:
    with pytest.raises(NotConfigured, match="empty"):
        Backoff.sequence([])


def test_the_default_comes_from_the_settings(settings: Settings) -> None:
    settings.SCHEDULER = {}
    assert default_backoff() == Backoff(base=15 * SECOND, cap=6 * HOUR, factor=2, jitter="full")
    settings.SCHEDULER = {"backoff_base": 1, "backoff_cap": 60}
    assert default_backoff() == Backoff(base=SECOND, cap=60 * SECOND)
