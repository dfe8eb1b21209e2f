"""The faults, a kind a function: each strikes the cluster, heals what it broke and says whom it hit (None: all)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.storm.cluster import Cluster
from tests.storm.faults import (
    clocks,
    days,
    deadlocks,
    deploys,
    disks,
    freezes,
    kills,
    network,
    rewrites,
    servers,
    sessions,
    snapshots,
    timeouts,
)

Pids = frozenset[int] | None


@dataclass(frozen=True)
class Fault:
    name: str
    strike: Callable[[Cluster, Random], Pids]
    at_once: bool = False
    """Claims are lost when it begins, not when a lease has passed."""


FAULTS = (
    Fault("kill -9 a worker's child", kills.child, at_once=True),
    Fault("kill -9 a worker", kills.worker, at_once=True),
    Fault("kill -9 a dispatcher", kills.dispatcher),
    Fault("kill -9 web", kills.web),
    Fault("kill -9 PgBouncer", kills.pooler),
    Fault("kill -9 PostgreSQL", servers.kill, at_once=True),
    Fault("PostgreSQL stops at once", servers.stop_at_once, at_once=True),
    Fault("freeze a worker beyond its lease", freezes.worker),
    Fault("freeze a worker's child", freezes.child),
    Fault("freeze a dispatcher", freezes.dispatcher),
    Fault("deploy a worker", deploys.worker, at_once=True),
    Fault("deploy a dispatcher", deploys.dispatcher),
    Fault("terminate all sessions", sessions.terminate),
    Fault("network stalls", network.stall),
    Fault("network stalls beyond the lease", network.stall_long),
    Fault("network drops", network.drop),
    Fault("network half-closes", network.half_close),
    Fault("network swallows", network.swallow),
    Fault("disk full", disks.full),
    Fault("read-only", disks.read_only),
    Fault("statement timeouts", timeouts.statements),
    Fault("deadlocks", deadlocks.entries),
    Fault("clock steps", clocks.step),
    Fault("long snapshot", snapshots.hold),
    Fault("days made, dropped, killed midway", days.upkeep),
    Fault("VACUUM FULL and ALTER", rewrites.rewrite),
)
