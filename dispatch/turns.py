"""Turns of a worker's queues: a backlog of quick jobs in one must not keep the others from its threads."""

from __future__ import annotations

from collections.abc import Sequence

PATIENCE = 1.0
"""Seconds for which a queue that has something due may find no room; then the others wait until it was served."""


class Turns:
    def __init__(self) -> None:
        self._waiting_since: dict[str, float] = {}

    def of(self, ready: Sequence[str], now: float) -> list[str]:
        """Those of the ready queues that may claim now. While one has waited for too long it is alone: the buffer
        drains within a second, and then its threads are free."""
        self._waiting_since = {name: self._waiting_since.get(name, now) for name in ready}
        hungry = [name for name in ready if now - self._waiting_since[name] > PATIENCE]
        return hungry or list(ready)

    def served(self, queue: str, now: float) -> None:
        """It had room to claim, whether or not it found anything that may run."""
        self._waiting_since[queue] = now
