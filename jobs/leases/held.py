"""Holds of job types and groups: what waits is parked, and comes back when its hold has ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg

from jobs.results import Key
from jobs.sql import load

Connection = psycopg.Connection[Any]

BATCH = 5000
"""Entries of one statement."""


@dataclass(frozen=True)
class Targets:
    """Job types and groups, by name."""

    types: Sequence[str] = field(default_factory=tuple)
    groups: Sequence[str] = field(default_factory=tuple)

    def __bool__(self) -> bool:
        return bool(self.types or self.groups)

    @classmethod
    def of(cls, holds: Iterable[tuple[str, str]]) -> Targets:
        """From pairs of scope and key; other scopes are left out."""
        some = list(holds)
        return cls(
            [key for scope, key in some if scope == "type"], [key for scope, key in some if scope == "group"]
        )


def park_held(connection: Connection, held: Targets, since: datetime, now: datetime) -> tuple[int, set[Key]]:
    """Park what became due in (since, now]: how many, a batch at most or twice that with keys, and the concurrency keys
    that may have room now."""
    values = {"types": held.types, "groups": held.groups, "since": since, "now": now, "limit": BATCH}
    return _counted(connection.execute(load("park_held"), _lists(values)).fetchall())


def unpark_held(
    connection: Connection, targets: Targets | None, held: Targets, limit: int | None = None
) -> tuple[int, set[Key]]:
    """Return what was parked for these targets (None: for whatever) to its queues, but for what is held: how many, and
    their concurrency keys."""
    values = {
        "everything": targets is None,
        "types": targets.types if targets else (),
        "groups": targets.groups if targets else (),
        "held_types": held.types,
        "held_groups": held.groups,
        "limit": BATCH if limit is None else limit,
    }
    return _counted(connection.execute(load("unpark_held"), _lists(values)).fetchall())


def drain(
    connection: Connection, hold_id: int, rate: int, targets: Targets, held: Targets
) -> tuple[int, set[Key]]:
    """`unpark_held` for one hold, at most `rate` a second over all dispatchers: one at a time, none waits."""
    with connection.transaction():
        lock = "SELECT FROM jobs_hold WHERE id = %s AND drained_at IS NULL FOR NO KEY UPDATE SKIP LOCKED"
        if connection.execute(lock, [hold_id]).fetchone() is None:
            return 0, set()
        row = connection.execute(load("drain"), {"key": str(hold_id), "rate": rate}).fetchone()
        allowed = row[0] if row else 0
        back, keys = (
            unpark_held(connection, targets, held, min(allowed, BATCH)) if allowed else (0, set[Key]())
        )
        connection.execute(
            "UPDATE jobs_ratebucket SET tokens = tokens - %s WHERE scope = 'hold' AND key = %s",
            [back, str(hold_id)],
        )
    return back, keys


def _lists(values: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, Sequence) else value for name, value in values.items()}


def _counted(rows: list[tuple[Any, ...]]) -> tuple[int, set[Key]]:
    return len(rows), {(tenant_id, key) for tenant_id, key in rows if key is not None}
