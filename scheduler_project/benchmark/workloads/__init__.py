"""The workloads, by name."""

from __future__ import annotations

from collections.abc import Callable

from scheduler_project.benchmark.report import Report
from scheduler_project.benchmark.stage import Stage
from scheduler_project.benchmark.workloads import (
    burst,
    cron,
    dispatchers,
    fairness,
    limits,
    parked,
    pinned,
    precision,
    schedule,
    slow,
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
    "fairness": fairness.run,
    "limits": limits.run,
    "slow": slow.run,
    "soak": soak.run,
    "cron": cron.run,
}
