"""An administrator ends every session."""

from __future__ import annotations

from random import Random

from tests.storm.cluster import Cluster
from tests.storm.server import OURS

TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    f"WHERE backend_type = 'client backend' AND application_name <> '{OURS}'"
)


def terminate(cluster: Cluster, chance: Random) -> None:
    for _ in range(chance.randrange(1, 5)):
        cluster.server.execute(TERMINATE)
        cluster.wait(chance.uniform(0.0, 0.5))
