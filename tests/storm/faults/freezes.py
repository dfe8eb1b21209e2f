"""SIGSTOP and, later, SIGCONT: what was frozen believes that no time has passed."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from random import Random

from tests.storm.cluster import Cluster
from tests.storm.environment import LEASE


def worker(cluster: Cluster, chance: Random) -> frozenset[int]:
    member = cluster.busy_worker(chance)
    pids = member.pids
    member.send(signal.SIGSTOP, group=True)
    cluster.wait(LEASE * chance.uniform(1.3, 1.8))
    member.send(signal.SIGCONT, group=True)
    return pids


def child(cluster: Cluster, chance: Random) -> frozenset[int]:
    """Its supervisor goes on renewing the lease."""
    member = cluster.busy_worker(chance)
    pids = frozenset(member.children)
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if number is signal.SIGSTOP:
            cluster.wait(LEASE * chance.uniform(0.5, 1.3))
    return pids


def dispatcher(cluster: Cluster, chance: Random) -> frozenset[int]:
    member = cluster.ready("dispatcher", chance)
    member.send(signal.SIGSTOP, group=True)
    cluster.wait(LEASE * chance.uniform(0.5, 1.5))
    member.send(signal.SIGCONT, group=True)
    return frozenset()
