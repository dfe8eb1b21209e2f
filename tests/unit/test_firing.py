"""The fate of every slot between two looks, as pure arithmetic: no slot is forgotten and none is told twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.cron import Cron
from jobs.firing import COUNT_LIMIT, Firing, Policy, firings

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
EVERY_MINUTE = Cron("* * * * *")


def fate(policy: Policy, cursor: float, until: float = 2.0, rule: Cron = EVERY_MINUTE) -> list[Firing]:
    """Slots from `cursor` minutes to `until` minutes around noon, seen at 30 s past it."""
    now = NOON + MINUTE / 2
    until_at = NOON + until * MINUTE
    found, reached = firings(rule, policy, cursor=NOON + cursor * MINUTE, now=now, until=until_at)
    assert reached == max(NOON + cursor * MINUTE, until_at)
    return found


def told(found: list[Firing]) -> list[tuple[str, float, int]]:
    return [(each.outcome, (each.slot - NOON) / MINUTE, each.slots) for each in found]


def test_slots_ahead_are_fired_and_the_cursor_itself_is_not() -> None:
    assert told(fate(Policy(), cursor=0)) == [("fired", 1, 1), ("fired", 2, 1)]


def test_a_slot_within_the_grace_is_on_time() -> None:
    assert told(fate(Policy(), cursor=-0.1)) == [("fired", 0, 1), ("fired", 1, 1), ("fired", 2, 1)]


def test_missed_slots_are_merged_into_one_late_run() -> None:
    rule = Cron("50-57 * * * *")
    assert told(fate(Policy(), cursor=-12, rule=rule)) == [("merged", -10, 7), ("late", -3, 1)]


def test_they_are_merged_into_the_slot_that_is_due_now_when_there_is_one() -> None:
    assert told(fate(Policy(), cursor=-6, until=0)) == [("merged", -5, 4), ("merged", -1, 1), ("fired", 0, 1)]


def test_each_missed_slot_runs_when_all_shall() -> None:
    assert told(fate(Policy(misfire="run_all"), cursor=-4, until=0)) == [
        ("late", -3, 1), ("late", -2, 1), ("late", -1, 1), ("fired", 0, 1),
    ]  # fmt: skip


def test_of_more_than_the_limit_the_newest_run() -> None:
    found = fate(Policy(misfire="run_all", limit=2), cursor=-6, until=0)
    assert told(found) == [("missed", -5, 3), ("late", -2, 1), ("late", -1, 1), ("fired", 0, 1)]
    assert found[0].last_slot == NOON - 3 * MINUTE
    assert found[0].reason == "over the catch-up limit"


def test_skipped_slots_are_one_range() -> None:
    assert told(fate(Policy(misfire="skip"), cursor=-6, until=1)) == [
        ("skipped", -5, 5), ("fired", 0, 1), ("fired", 1, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("misfire", ["run_once", "run_all", "skip"])
def test_what_is_older_than_the_window_is_missed_whatever_the_policy(misfire: str) -> None:
    found = fate(Policy(misfire=misfire, window=5 * MINUTE), cursor=-20, until=0)
    assert told(found)[0] == ("missed", -19, 15)
    assert sum(each.slots for each in found) == 20


def test_a_year_of_nothing_is_little_work_and_says_at_least() -> None:
    found = fate(Policy(window=timedelta(days=400)), cursor=-365 * 1440, until=-2)
    assert told(found)[0] == ("merged", -365 * 1440 + 1, COUNT_LIMIT)
    assert found[0].last_slot == NOON - 3 * MINUTE
    assert told(found)[-1] == ("late", -2, 1)


def test_nothing_is_due_between_two_slots() -> None:
    assert fate(Policy(), cursor=0.6, until=0.9) == []
    assert fate(Policy(), cursor=3, until=2) == []


@given(
    cursor=st.integers(-90, 3),
    until=st.integers(-2, 5),
    step=st.sampled_from(["*", "*/2", "*/7", "3,33", "59"]),
    misfire=st.sampled_from(["run_once", "run_all", "skip"]),
    window=st.integers(0, 100),
    limit=st.integers(1, 20),
    grace=st.integers(0, 5),
)
def test_every_slot_has_exactly_one_fate_in_order(
    cursor: int, until: int, step: str, misfire: str, window: int, limit: int, grace: int
) -> None:
    rule = Cron(f"{step} * * * *")
    policy = Policy(misfire=misfire, window=window * MINUTE, limit=limit, grace=grace * MINUTE)
    found = fate(policy, cursor, until, rule)
    slots = rule.between(NOON + cursor * MINUTE, NOON + until * MINUTE).fires if until > cursor else []
    covered = [slot for each in found for slot in slots if each.slot <= slot <= (each.last_slot or each.slot)]
    assert covered == slots
    assert sum(each.slots for each in found) == len(slots)
    assert sum(each.outcome == "late" for each in found) <= (limit if misfire == "run_all" else 1)
    assert misfire != "skip" or not any(each.outcome == "late" for each in found)
