"""Claims made a moment ahead start at their time; who keeps coming too late stands back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from dispatch.holdings import Holding, Holdings
from dispatch.reserve import FIRST, MOST, Reserve
from dispatch.slots import Slots
from dispatch.starts import Starts
from jobs.clock import DatabaseClock
from jobs.ids import new_id
from jobs.results import Claim, Held

NOW = datetime(2026, 12, 1, tzinfo=UTC)
SOON, LATER, NEVER = timedelta(seconds=0.05), timedelta(seconds=0.1), timedelta(hours=1)


class Started:
    """What was started, and when by the database's clock."""

    def __init__(self) -> None:
        self.clock = DatabaseClock()
        self.clock.observe(NOW)
        self.starts = Starts(self.clock, self._start)
        self._holdings = Holdings(Slots.create(1, 30.0))
        self._changed = threading.Condition()
        self.holdings: list[Holding] = []
        self.late: list[timedelta] = []

    def _start(self, holding: Holding) -> None:
        with self._changed:
            self.holdings.append(holding)
            self.late.append(self.clock.now() - holding.claim.run_at)
            self._changed.notify()

    def put(self, after: timedelta, since: datetime | None = None) -> Holding:
        held = Held(new_id(NOW), uuid4(), 1, "test.noop", 1, 20, 0)
        run_at = (since or self.clock.now()) + after
        claim = Claim(held, 1, "acme", "q", 0, run_at, None, False, "{}")
        holding = self._holdings.add(claim)
        self.is_held = self.starts.put(holding, self.starts.clock.now())
        return holding

    def wait_for(self, number: int) -> list[Holding]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.holdings) >= number, 30)
        return self.holdings


@pytest.fixture
def started() -> Iterator[Started]:
    started = Started()
    started.starts.start()
    yield started
    started.starts.finish()


def test_what_is_due_starts_at_once(started: Started) -> None:
    assert started.holdings == [started.put(-SOON)]
    assert not started.is_held


def test_what_was_claimed_ahead_is_held_until_its_time(started: Started) -> None:
    holding = started.put(SOON)
    assert started.is_held
    assert started.wait_for(1) == [holding]
    assert started.late[0] >= timedelta()


def test_an_earlier_one_does_not_wait_for_a_later_one(started: Started) -> None:
    started.put(NEVER)
    later, earlier = started.put(LATER), started.put(SOON)
    assert started.wait_for(2) == [earlier, later]
    assert min(started.late) >= timedelta()


def test_those_of_one_instant_start_in_the_order_of_their_claims(started: Started) -> None:
    now = started.clock.now()
    some = [started.put(SOON, since=now) for _ in range(5)]
    assert started.wait_for(5) == some


def test_what_is_still_held_at_the_end_is_not_started() -> None:
    started = Started()
    started.starts.start()
    started.put(NEVER)
    started.starts.finish()
    assert started.holdings == []


def test_who_comes_too_late_stands_back_twice_as_long_each_time_up_to_a_bound() -> None:
    reserve = Reserve()
    assert reserve.lag == 0.0
    lags = []
    for _ in range(8):
        reserve.lost()
        lags.append(reserve.lag)
    assert lags[:3] == [FIRST, 2 * FIRST, 4 * FIRST]
    assert lags[-1] == MOST


def test_who_wins_stands_back_half_as_long_and_at_last_not_at_all() -> None:
    reserve = Reserve()
    for _ in range(3):
        reserve.lost()
    lags = []
    for _ in range(4):
        reserve.won()
        lags.append(reserve.lag)
    assert lags == [2 * FIRST, FIRST, 0.0, 0.0]
