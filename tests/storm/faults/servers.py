"""PostgreSQL dies and comes back."""

from __future__ import annotations

import signal
from random import Random

from tests.storm.cluster import Cluster


def kill(cluster: Cluster, chance: Random) -> None:
    _outage(cluster, chance, signal.SIGKILL)


def stop_at_once(cluster: Cluster, chance: Random) -> None:
    """An immediate shutdown: no checkpoint, as after a crash of the machine."""
    _outage(cluster, chance, signal.SIGQUIT)


def _outage(cluster: Cluster, chance: Random, number: signal.Signals) -> None:
    cluster.server.send(number)
    cluster.wait(chance.uniform(0.0, 2.0))
    cluster.start_server()
