"""Somebody locks entries in the order opposite to ours."""

from __future__ import annotations

from random import Random

import psycopg

from tests.storm.cluster import Cluster

ROUNDS = 15
LEASED = "SELECT job_id FROM jobs_queueentry WHERE process_id IS NOT NULL ORDER BY job_id DESC LIMIT 6"


def entries(cluster: Cluster, chance: Random) -> None:
    with cluster.server.session() as connection:
        connection.execute("SET lock_timeout = '2s'")
        for _ in range(ROUNDS):
            ids = [job_id for (job_id,) in connection.execute(LEASED).fetchall()]
            try:
                with connection.transaction():
                    for job_id in ids:
                        connection.execute(
                            "SELECT FROM jobs_queueentry WHERE job_id = %s FOR UPDATE", [job_id]
                        )
                        cluster.wait(0.05)
            except psycopg.OperationalError:  # the deadlock, or what we waited for too long
                continue
