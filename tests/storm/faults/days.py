"""Days are made and dropped meanwhile, and whoever does it is killed in the middle."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime, timedelta
from random import Random

from tests.storm.cluster import Cluster

PAST, AHEAD = 10, 40
"""Days ago that are made to be dropped, and days ahead."""
AT_WORK = (
    "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() "
    "AND (query LIKE 'CREATE TABLE%' OR query LIKE 'ALTER TABLE%' OR query LIKE 'DROP TABLE%'))"
)
LOOKS = 4000


def upkeep(cluster: Cluster, chance: Random) -> frozenset[int]:
    today = datetime.now(UTC).date()
    first = chance.randrange(3)
    days = [today - timedelta(days=PAST + number) for number in range(first, first + 4)]
    days += [today + timedelta(days=AHEAD + number) for number in range(first, first + 4)]
    ensure = ["managepartitions", "ensure", *(f"--day={day}" for day in days)]
    _killed(cluster, *ensure)
    again = cluster.manage(*ensure)
    cluster.wait(60, lambda: again.poll() is not None)
    _killed(cluster, "managepartitions", "expire")
    return frozenset()


def _killed(cluster: Cluster, *arguments: str) -> None:
    """The command, killed as soon as it changes a table."""
    process = cluster.manage(*arguments)
    with cluster.server.session() as connection:
        for _ in range(LOOKS):
            row = connection.execute(AT_WORK).fetchone()
            if (row and row[0]) or process.poll() is not None:
                break
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
