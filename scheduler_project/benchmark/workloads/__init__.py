"""The workloads, by name."""

from __future__ import annotations

from collections.abc import Callable

from scheduler_project.benchmark.report import Report
from scheduler_project.benchmark.stage import Stage
from scheduler_project.benchmark.workloads import (
    burst,
    dispatchers,
    parked,
    pinned,
    precision,
    schedule,
    soak,
    steady,
    wal,
)

WORKLOADS: dict[str, Callable[[Stage], Report]] = {
    "schedule": schedule.run,
    "burst": burst.run,
    "steady": steady.run,
    "precision": precision.run,
    "parked": parked.run,
    "wal": wal.run,
    "dispatchers": dispatchers.run,
    "pinned": pinned.run,
    "soak": soak.run,
}
