"""A transaction that stays open: nothing that ended since can be cleaned up."""

from __future__ import annotations

from random import Random

from tests.storm.cluster import Cluster


def hold(cluster: Cluster, chance: Random) -> None:
    with cluster.server.session() as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM jobs_job")
        cluster.wait(chance.uniform(4.0, 8.0))
