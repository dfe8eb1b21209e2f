"""How long things took, as counts in fixed steps: they add up over minutes, queues and tenants, percentiles do not."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import zip_longest

BOUNDS = (
    0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0,
    30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0, 450.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0, 5400.0, 7200.0,
    10800.0, 18000.0, 28800.0, 43200.0, 86400.0, 172800.0,
)  # fmt: skip
"""Seconds. Step n counts what took at least BOUNDS[n - 1] and less than BOUNDS[n]."""


@dataclass(frozen=True)
class Histogram:
    counts: tuple[int, ...] = ()
    """By step; steps that are missing at the end are empty."""

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Histogram:
        counts = [0] * (len(BOUNDS) + 1)
        for value in seconds:
            counts[bisect_right(BOUNDS, value)] += 1
        return cls(trimmed(counts))

    @property
    def total(self) -> int:
        return sum(self.counts)

    def __add__(self, other: Histogram) -> Histogram:
        return Histogram(tuple(map(sum, zip_longest(self.counts, other.counts, fillvalue=0))))

    def __or__(self, other: Histogram) -> Histogram:
        """The larger count of each step: of two looks at the same minute."""
        return Histogram(tuple(map(max, zip_longest(self.counts, other.counts, fillvalue=0))))

    def percentile(self, percent: float) -> timedelta | None:
        """What so many percent stayed below, interpolated within its step; None when nothing was counted. Beyond the
        last bound it is the last bound."""
        if not self.total:
            return None
        wanted, passed = self.total * percent / 100, 0
        for step, count in enumerate(self.counts):
            if count and passed + count >= wanted:
                low = BOUNDS[step - 1] if step else 0.0
                high = BOUNDS[step] if step < len(BOUNDS) else low
                return timedelta(seconds=low + (high - low) * max(0.0, wanted - passed) / count)
            passed += count
        return timedelta(seconds=BOUNDS[-1])  # only by rounding

    def share_within(self, limit: timedelta) -> float | None:
        """Which part, from 0 to 1, took less than `limit`, to the bound at or below it; None when nothing was counted."""
        if not self.total:
            return None
        steps = bisect_right(BOUNDS, limit.total_seconds())
        return sum(self.counts[:steps]) / self.total


def trimmed(counts: Sequence[int]) -> tuple[int, ...]:
    """Without the empty steps at the end."""
    last = max((step for step, count in enumerate(counts) if count), default=-1)
    return tuple(counts[: last + 1])
