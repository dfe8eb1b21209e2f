"""How far this host's clock is from the database's."""

from __future__ import annotations

import time
from typing import Any

import psycopg

Connection = psycopg.Connection[Any]

LOOKS = 50


def clock_offset(connection: Connection) -> float:
    """Seconds to add to time.time() for the database's time. Each reply bounds it from both sides; it is 0 while the
    bounds allow that both read the same clock."""
    low, high = float("-inf"), float("inf")
    for _ in range(LOOKS):
        before = time.time()
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        after = time.time()
        if row:
            low, high = max(low, row[0] - after), min(high, row[0] - before)
    return 0.0 if low <= 0.0 <= high else (low + high) / 2
