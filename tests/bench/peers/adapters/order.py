"""What an adapter is asked to schedule, and how long its calls took. `node/order.mjs` is the same in Node."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TypedDict

CALL = 1000
"""Jobs that a call of a bulk API is given."""
TEXT = "y" * 47
"""It makes a payload about 100 bytes of JSON."""


class Job(TypedDict):
    """The payload."""

    number: int
    due: float
    text: str


class Order:
    """`bulk`: by the bulk API, else one by one. `first`: the number of the first job."""

    def __init__(self, bulk: bool, first: int, dues: list[float]) -> None:
        self.bulk, self.first, self.dues = bulk, first, dues
        self._times: list[float] = []

    def calls(self) -> Iterator[list[Job]]:
        """The jobs of one call after another; the time until the next is asked for counts as the call's."""
        size = CALL if self.bulk else 1
        for start in range(0, len(self.dues), size):
            jobs = [
                Job(number=number, due=due, text=TEXT)
                for number, due in enumerate(self.dues[start : start + size], self.first + start)
            ]
            begun = time.perf_counter()
            yield jobs
            self._times.append(time.perf_counter() - begun)

    def result(self) -> dict[str, Any]:
        return {
            "seconds": sum(self._times),
            "p50_ms": statistics.median(self._times) * 1000,
            "ended": time.time(),
        }


def when(job: Job) -> datetime:
    return datetime.fromtimestamp(job["due"], UTC)
