"""The disk is full, or the server takes no writes."""

from __future__ import annotations

from random import Random

from tests.storm.cluster import Cluster
from tests.storm.faults.sessions import TERMINATE

TABLES = ("jobs_queueentry", "jobs_job", "jobs_uniquekey", "jobs_process")


def full(cluster: Cluster, chance: Random) -> None:
    """Writes of one table fail as on a full disk: the server's own error, raised by a trigger."""
    table = chance.choice(TABLES)
    cluster.server.insist(
        "CREATE OR REPLACE FUNCTION storm_full() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$",
        f"CREATE OR REPLACE TRIGGER storm_full BEFORE INSERT OR UPDATE OR DELETE ON {table} "
        "FOR EACH ROW EXECUTE FUNCTION storm_full()",
    )
    cluster.wait(chance.uniform(1.0, 4.0))
    cluster.server.insist(f"DROP TRIGGER storm_full ON {table}")


def read_only(cluster: Cluster, chance: Random) -> None:
    """As after a failover to a standby: the sessions are ended, the next ones may not write."""
    change = "ALTER SYSTEM SET default_transaction_read_only = on"
    cluster.server.execute(change, "SELECT pg_reload_conf()", TERMINATE)
    cluster.wait(chance.uniform(1.0, 4.0))
    cluster.server.execute(
        "ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()", TERMINATE
    )
