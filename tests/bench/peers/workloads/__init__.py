"""The workloads, by name: each gives figures of one run of one peer."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.bench.peers.stage import Stage
from tests.bench.peers.workloads import burst, precision, schedule

Figures = dict[str, float]

WORKLOADS: dict[str, Callable[[Stage, int, Random], Figures]] = {
    "burst": burst.run,
    "schedule": schedule.run,
    "precision": precision.run,
}
