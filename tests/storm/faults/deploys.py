"""SIGTERM and another version of the code: for a while, old and new work side by side."""

from __future__ import annotations

from random import Random

from tests.storm.cluster import NEVER_OLD, TURN, Cluster
from tests.storm.environment import GRACE, OLD

LEAVE = GRACE + 20.0
"""Seconds in which a process must have left, on a machine that is busy with a storm."""


def worker(cluster: Cluster, chance: Random) -> frozenset[int]:
    member = cluster.busy_worker(chance)
    pids = member.pids
    if member.name == NEVER_OLD:
        member.version = OLD  # so that what comes is new
    cluster.fleet.deploy(member, LEAVE, lambda: _go_on(cluster))
    return pids


def dispatcher(cluster: Cluster, chance: Random) -> frozenset[int]:
    member = cluster.ready("dispatcher", chance)
    cluster.fleet.deploy(member, LEAVE, lambda: _go_on(cluster))
    return frozenset()


def _go_on(cluster: Cluster) -> None:
    cluster.wait(TURN)
