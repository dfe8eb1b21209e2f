"""A server that gives up on statements after a few milliseconds."""

from __future__ import annotations

from random import Random

from tests.storm.cluster import Cluster


def statements(cluster: Cluster, chance: Random) -> None:
    name = chance.choice(["statement_timeout", "lock_timeout", "transaction_timeout"])
    value = chance.choice(["2ms", "5ms", "20ms"])
    cluster.server.execute(f"ALTER SYSTEM SET {name} = '{value}'", "SELECT pg_reload_conf()")
    cluster.wait(chance.uniform(1.0, 4.0))
    cluster.server.execute(
        "SET statement_timeout = 0", f"ALTER SYSTEM RESET {name}", "SELECT pg_reload_conf()"
    )
