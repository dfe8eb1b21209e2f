"""An administrator rewrites the queue under the workers."""

from __future__ import annotations

from random import Random

from tests.storm.cluster import Cluster


def rewrite(cluster: Cluster, chance: Random) -> None:
    cluster.server.insist(
        "VACUUM FULL jobs_queueentry",
        "ALTER TABLE jobs_queueentry ADD COLUMN storm integer DEFAULT 7",
    )
    cluster.wait(chance.uniform(0.5, 1.5))
    cluster.server.insist(
        "ALTER TABLE jobs_queueentry DROP COLUMN storm",
        "VACUUM FULL jobs_process",
        "VACUUM FULL jobs_tenant",
        "REINDEX TABLE jobs_queueentry",
    )
