"""Intervals and single moments; TZ-13: an interval is elapsed time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.cron import Cron, CronError, Interval, Once, recurrence

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)


def test_tz_13_an_interval_is_elapsed_time_and_never_looks_at_a_wall_clock() -> None:
    brussels = ZoneInfo("Europe/Brussels")
    weekly = Interval(timedelta(days=7), datetime(2019, 3, 26, 16, tzinfo=brussels))
    assert weekly.next(datetime(2019, 3, 26, 16, tzinfo=brussels)) == datetime(
        2019, 4, 2, 17, tzinfo=brussels
    )
    on_the_wall = Cron("0 16 * * 2", "Europe/Brussels")
    assert on_the_wall.next(datetime(2019, 3, 26, 16, tzinfo=brussels)) == datetime(
        2019, 4, 2, 16, tzinfo=brussels
    )


@given(
    every=st.integers(1, 10**8),
    anchor=st.integers(-(10**9), 10**9),
    at=st.integers(-(10**9), 10**9),
    span=st.integers(0, 10**9),
    limit=st.integers(1, 20),
)
def test_next_prev_and_between_tell_of_one_set(
    every: int, anchor: int, at: int, span: int, limit: int
) -> None:
    rule = Interval(timedelta(seconds=every), NOON + timedelta(seconds=anchor))
    moment, end = NOON + timedelta(seconds=at), NOON + timedelta(seconds=at + span)
    following, before = rule.next(moment), rule.prev(moment)
    assert following
    assert before
    assert before <= moment < following == before + rule.every
    assert rule.prev(following) == following
    assert (following - rule.anchor) % rule.every == timedelta()
    fires, cut = rule.between(moment, end, limit)
    assert fires == [following + n * rule.every for n in range(len(fires))]
    assert all(fire <= end for fire in fires)
    assert cut == (len(fires) == limit and following + limit * rule.every <= end)
    assert cut or following + len(fires) * rule.every > end


def test_an_interval_ends_with_the_calendar() -> None:
    rule = Interval(timedelta(days=3000), NOON)
    assert rule.next(datetime(9999, 12, 30, tzinfo=UTC)) is None
    assert rule.prev(datetime(1, 1, 1, tzinfo=UTC)) is None


def test_a_moment_is_one_slot() -> None:
    rule = Once(NOON)
    assert (rule.next(NOON - MOMENT), rule.next(NOON)) == (NOON, None)
    assert (rule.prev(NOON), rule.prev(NOON - MOMENT)) == (NOON, None)
    assert rule.between(NOON - MOMENT, NOON) == ([NOON], False)
    assert rule.between(NOON, NOON + MOMENT) == ([], False)


@pytest.mark.parametrize(
    "every", [timedelta(), timedelta(milliseconds=999), -timedelta(days=1), timedelta(days=4000), 300, "5m"]
)
def test_an_interval_that_is_too_short_or_too_long_or_none_is_refused(every: Any) -> None:
    with pytest.raises(CronError) as refusal:
        Interval(every, NOON)
    assert refusal.value.field == "every"


def test_a_rule_is_one_of_three() -> None:
    assert isinstance(recurrence(expression="* * * * *"), Cron)
    assert isinstance(recurrence(every=timedelta(hours=1)), Interval)
    assert isinstance(recurrence(run_at=NOON), Once)
    for wrong in (
        {"expression": "* * * * *", "run_at": NOON},
        {"every": timedelta(hours=1), "run_at": NOON},
        {},
    ):
        with pytest.raises(CronError):
            recurrence(**wrong)  # type: ignore[arg-type]
    with pytest.raises(CronError, match="aware"):
        Once(NOON.replace(tzinfo=None))
