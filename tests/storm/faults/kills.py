"""SIGKILL: no handler, no clean-up, no goodbye."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from random import Random

from tests.storm.cluster import Cluster


def child(cluster: Cluster, chance: Random) -> frozenset[int]:
    member = cluster.busy_worker(chance)
    running = {line.pid for line in cluster.running()}
    pid = chance.choice([pid for pid in member.children if pid in running] or member.children or [0])
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return frozenset({pid})


def worker(cluster: Cluster, chance: Random) -> frozenset[int]:
    member = cluster.busy_worker(chance)
    pids = member.pids
    member.kill()
    return pids


def dispatcher(cluster: Cluster, chance: Random) -> frozenset[int]:
    cluster.ready("dispatcher", chance).kill()
    return frozenset()


def web(cluster: Cluster, chance: Random) -> frozenset[int]:
    for member in cluster.fleet.of("web"):
        member.send(signal.SIGKILL, group=True)
    return frozenset()


def pooler(cluster: Cluster, chance: Random) -> None:
    cluster.pooler.send(signal.SIGKILL)
    cluster.wait(chance.uniform(0.0, 2.0))
    cluster.pooler.start()
