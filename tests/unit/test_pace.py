from __future__ import annotations

from dispatch.pace import Pace


def test_nothing_is_claimed_ahead_before_a_body_was_measured() -> None:
    assert Pace().ahead("q", 8, 500) == 0


def test_fast_bodies_are_claimed_ahead_up_to_the_batch() -> None:
    pace = Pace()
    for _ in range(100):
        pace.note("q", "fast", 1, 0.0001)
    assert pace.ahead("q", 8, 500) == 500


def test_the_slowest_type_of_a_queue_decides() -> None:
    pace = Pace()
    for _ in range(100):
        pace.note("q", "fast", 1, 0.0001)
        pace.note("q", "slow", 1, 0.2)
    assert 30 <= pace.ahead("q", 8, 500) <= 41
    assert pace.ahead("other", 8, 500) == 0


def test_bodies_of_a_second_and_more_are_never_claimed_ahead() -> None:
    pace = Pace()
    pace.note("q", "long", 1, 3600)
    assert pace.ahead("q", 8, 500) == 0
