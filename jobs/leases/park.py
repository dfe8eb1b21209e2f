"""Park: due entries of a type that no live process knows leave the ready index; unpark brings them back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import psycopg

from jobs.sql import load

Connection = psycopg.Connection[Any]


BATCH = 5000
"""Entries of one statement; a constant in it."""


def park(connection: Connection, queue: str) -> Counter[str]:
    """Park what nobody alive can run; returns the number by type."""
    rows = connection.execute(load("park"), {"queue": queue}).fetchall()
    return Counter(kind for (kind,) in rows)


def unpark(connection: Connection, types: Sequence[str]) -> int:
    """Return parked entries of these types to their queues, up to 5,000; returns how many."""
    return connection.execute(load("unpark"), {"types": list(types)}).rowcount
