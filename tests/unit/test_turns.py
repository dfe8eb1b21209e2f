from __future__ import annotations

from dispatch.turns import PATIENCE, Turns


def test_all_ready_queues_claim_while_none_has_waited_for_long() -> None:
    turns = Turns()
    assert turns.of(["a", "b"], 0.0) == ["a", "b"]
    assert turns.of(["a", "b"], PATIENCE) == ["a", "b"]


def test_a_queue_that_found_no_room_for_a_second_claims_alone_until_it_was_served() -> None:
    turns = Turns()
    turns.of(["a", "b"], 0.0)
    turns.served("a", 0.9)
    assert turns.of(["a", "b"], 1.1) == ["b"]
    assert turns.of(["a", "b"], 1.2) == ["b"]
    turns.served("b", 1.3)
    assert turns.of(["a", "b"], 1.4) == ["a", "b"]


def test_a_queue_that_has_nothing_due_any_more_starts_anew() -> None:
    turns = Turns()
    turns.of(["a", "b"], 0.0)
    turns.of(["a"], 0.5)
    turns.served("a", 1.9)
    assert turns.of(["a", "b"], 2.0) == ["a", "b"]
