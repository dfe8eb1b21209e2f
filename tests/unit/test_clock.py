"""The estimate of the database's time: never ahead of what it said, and as near as its fastest reply allows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jobs import clock
from jobs.clock import SLOWEST, DatabaseClock

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


class Host:
    """Seconds since boot, moved by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    here = Host()
    monkeypatch.setattr(clock, "boottime", here)
    return here


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def observed(host: Host, *replies: tuple[float, float]) -> DatabaseClock:
    """Replies as (seconds after boot time 1000 at which they arrive, seconds after noon that they tell)."""
    here = DatabaseClock()
    for arrives, told in replies:
        host.now = 1000.0 + arrives
        here.observe(after(told))
    return here


def test_time_goes_on_after_a_reply(host: Host) -> None:
    here = observed(host, (0, 0))
    host.now += 2.5
    assert here.now() == after(2.5)
    assert here.at(999.0) == NOON  # not before what was told


def test_of_the_replies_of_a_second_the_fastest_counts(host: Host) -> None:
    assert observed(host, (0, 0), (0.5, 0.48)).now() == after(0.5)  # this one took 20 ms longer
    assert observed(host, (0, 0), (0.5, 0.52)).now() == after(0.52)


def test_after_a_second_any_reply_counts(host: Host) -> None:
    assert observed(host, (0, 0), (1.5, 1.48)).now() == after(1.48)


def test_a_clock_that_was_set_back_counts_at_once(host: Host) -> None:
    back = 0.5 - SLOWEST - 0.01
    assert observed(host, (0, 0), (0.5, back)).now() == after(back)


def test_nothing_is_known_before_the_first_reply() -> None:
    with pytest.raises(RuntimeError, match="before the database was asked"):
        DatabaseClock().now()
