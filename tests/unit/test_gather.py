"""When results are written: one that comes alone at once, many that come together by one statement."""

from __future__ import annotations

from queue import Empty
from typing import Any
from uuid import uuid4

import pytest

from dispatch import settler as module
from dispatch.settler import BATCH, GATHER, Settler
from jobs.results import Completed, Held, Settlement

ONE = Settlement(Held(uuid4(), uuid4(), 1, "test.noop", 1, 20, 0), Completed(), None)


class Clock:
    """Stands for the clock and the queue of a settler, which waits in no other way: results come at times of ours."""

    def __init__(self, *arrivals: float) -> None:
        self.now = 1000.0
        self.coming: list[tuple[float, Settlement | None]] = [(self.now + at, ONE) for at in arrivals]

    def monotonic(self) -> float:
        return self.now

    def get(self, timeout: float | None = None) -> Settlement | None:
        if not self.coming:
            return None  # the end
        at, _ = self.coming[0]
        if timeout is not None and at > self.now + timeout:
            self.now += timeout
            raise Empty
        self.now = max(self.now, at)
        return self.coming.pop(0)[1]


def writes(monkeypatch: pytest.MonkeyPatch, *arrivals: float, takes: float = 0.0) -> list[tuple[float, int]]:
    """When how many are written, in milliseconds after the start; `takes`: how long a write does."""
    clock: Any = Clock(*arrivals)
    written = []

    def write(batch: list[Settlement]) -> None:
        written.append((round((clock.now - 1000.0) * 1000, 3), len(batch)))
        clock.now += takes

    monkeypatch.setattr(module, "time", clock)
    settler = Settler("default", "punctual test", lambda settled: None, lambda: None)
    settler._results = clock
    monkeypatch.setattr(settler, "_write", write)
    settler._run()
    return written


def test_one_result_is_written_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    assert writes(monkeypatch, 0.0) == [(0, 1)]


def test_results_that_come_one_by_one_are_each_written_when_they_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    apart = 1.5 * GATHER
    assert writes(monkeypatch, 0, apart, 2 * apart, 3 * apart) == [(0, 1), (15, 1), (30, 1), (45, 1)]


def test_many_within_ten_milliseconds_of_a_write_are_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    assert writes(monkeypatch, 0, *(n / 1000 for n in range(1, 10)), 1) == [(0, 1), (10, 9), (1000, 1)]


def test_they_gather_from_the_end_of_the_write_before(monkeypatch: pytest.MonkeyPatch) -> None:
    assert writes(monkeypatch, 0, 0.001, 0.025, 0.035, takes=0.02) == [(0, 1), (30, 2), (50, 1)]


def test_a_full_batch_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert writes(monkeypatch, 0, *[0.001] * BATCH, 0.005, 1) == [(0, 1), (1, BATCH), (11, 1), (1000, 1)]


def test_the_end_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert writes(monkeypatch, 0, 0.001) == [(0, 1), (1, 1)]
