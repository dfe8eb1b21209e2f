"""The wall clock of a process jumps."""

from __future__ import annotations

from random import Random

from tests.storm.cluster import Cluster


def step(cluster: Cluster, chance: Random) -> frozenset[int]:
    members = [member for member in cluster.fleet.members if member.clock]
    pids = frozenset[int]()
    for member in members:
        if member.clock:
            member.clock.set(chance.choice([-86400, -120, -5, 5, 120, 86400]))
            pids |= member.pids
    cluster.wait(chance.uniform(2.0, 5.0))
    return pids
