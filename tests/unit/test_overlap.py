"""What the overlap policies decide at a slot, as pure arithmetic."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.firing import FIRED, LATE, Firing
from jobs.overlap import BUFFER_LIMIT, judge

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)
POLICIES = ("allow_all", "skip", "buffer_one", "buffer_all", "cancel_other")


def slots(number: int, outcome: str = FIRED) -> list[Firing]:
    return [Firing(NOON + timedelta(minutes=n), outcome) for n in range(number)]


@pytest.mark.parametrize(
    ("policy", "idle", "busy", "busy_and_one_waits"),
    [
        ("allow_all", "start start", "start start", "start start"),
        ("skip", "start skip", "skip skip", "skip skip"),
        ("buffer_one", "start wait", "wait skip", "skip skip"),
        ("buffer_all", "start wait", "wait wait", "wait wait"),
        ("cancel_other", "skip start", "skip wait", "skip wait"),
    ],
)
def test_two_slots_under_each_policy(policy: str, idle: str, busy: str, busy_and_one_waits: str) -> None:
    for is_busy, waiting, told in ((False, 0, idle), (True, 0, busy), (True, 1, busy_and_one_waits)):
        judged = judge(policy, slots(2), busy=is_busy, waiting=waiting)
        assert " ".join(verdict.what for verdict in judged.verdicts) == told


def test_a_start_that_waits_begins_when_nothing_runs() -> None:
    for policy in POLICIES:
        assert judge(policy, [], busy=False, waiting=2).start_waiting
        assert not judge(policy, [], busy=True, waiting=2).start_waiting


def test_a_slot_comes_after_those_that_wait() -> None:
    judged = judge("buffer_all", slots(1), busy=False, waiting=1)
    assert (judged.start_waiting, judged.verdicts[0].what) == (True, "wait")


def test_under_cancel_other_a_later_slot_overtakes_those_that_wait() -> None:
    judged = judge("cancel_other", slots(1), busy=True, waiting=1)
    assert (judged.cancel, judged.overtaken, judged.verdicts[0].what) == (True, 1, "wait")
    judged = judge("cancel_other", slots(1), busy=False, waiting=1)
    assert (judged.cancel, judged.overtaken, judged.start_waiting) == (False, 1, False)
    assert judged.verdicts[0].what == "start"


def test_it_asks_again_as_long_as_a_start_waits() -> None:
    assert judge("cancel_other", [], busy=True, waiting=1).cancel
    assert not judge("cancel_other", [], busy=True, waiting=0).cancel


def test_missed_slots_that_all_shall_run_are_not_eaten_by_skip() -> None:
    judged = judge("skip", [*slots(3, LATE), *slots(1)], busy=False, waiting=0)
    assert [verdict.what for verdict in judged.verdicts] == ["start", "wait", "wait", "skip"]


def test_no_more_than_a_hundred_wait() -> None:
    judged = judge("buffer_all", slots(BUFFER_LIMIT + 3), busy=True, waiting=1)
    assert sum(verdict.what == "wait" for verdict in judged.verdicts) == BUFFER_LIMIT - 1
    assert judged.verdicts[-1].reason == "overlap: 100 starts wait already"


@given(
    policy=st.sampled_from(POLICIES[1:]),
    late=st.integers(0, 5),
    fresh=st.integers(0, 5),
    busy=st.booleans(),
    waiting=st.integers(0, 105),
)
def test_never_do_two_run_and_every_slot_has_a_verdict(
    policy: str, late: int, fresh: int, busy: bool, waiting: int
) -> None:
    found = [*slots(late, LATE), *slots(fresh)]
    judged = judge(policy, found, busy=busy, waiting=waiting)
    assert [verdict.firing for verdict in judged.verdicts] == found
    starts = sum(verdict.what == "start" for verdict in judged.verdicts) + judged.start_waiting
    assert busy + starts <= 1
    waits = sum(verdict.what == "wait" for verdict in judged.verdicts)
    left = waiting - judged.start_waiting - judged.overtaken
    assert left >= 0
    assert left + waits <= max(BUFFER_LIMIT, waiting)
    assert busy or starts or not (found or waiting), "nothing runs although something should"
