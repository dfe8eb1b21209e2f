"""Processes register, renew their lease and end. The lease of everything a process claimed is this one row's."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import psycopg

from jobs.conf import conf
from jobs.models.process import ProcessKind

Connection = psycopg.Connection[Any]


def register(
    connection: Connection,
    kind: ProcessKind,
    *,
    pid: int | None = None,
    parent_id: int | None = None,
    queues: Sequence[str] = (),
    types: Sequence[str] = (),
    lease: timedelta | None = None,
) -> int:
    """A new process row, its lease beginning now by the database's clock; returns its id."""
    row = connection.execute(
        "INSERT INTO jobs_process (kind, host, pid, parent_id, queues, types, lease_expires_at) "
        "VALUES (%s, %s, %s, %s, %s::text[], %s::text[], clock_timestamp() + %s) RETURNING id",
        [
            kind.value,
            socket.gethostname()[:255],
            pid or os.getpid(),
            parent_id,
            list(queues),
            list(types),
            lease or conf().lease,
        ],
    ).fetchone()
    return int(row[0])  # type: ignore[index]


def renew(connection: Connection, ids: Sequence[int], *, lease: timedelta | None = None) -> set[int]:
    """Extend the leases of these processes; returns those that were still alive. The others never return: their
    entries may be rescued at any moment, so they stop their bodies and register anew."""
    # First all locks, then the judgement: of an UPDATE that waits for a row which then was only locked it was made before.
    # In one statement: one who is stopped between two would go on with a lease that the rescuer has seen expire meanwhile.
    rows = connection.execute(
        "WITH mine AS MATERIALIZED ("
        "SELECT id, ended_at, lease_expires_at FROM jobs_process WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE) "
        "UPDATE jobs_process SET lease_expires_at = clock_timestamp() + %s FROM mine WHERE jobs_process.id = mine.id "
        "AND mine.ended_at IS NULL AND mine.lease_expires_at > (SELECT max(clock_timestamp()) FROM mine) "
        "RETURNING mine.id",
        [list(ids), lease or conf().lease],
    ).fetchall()
    return {process_id for (process_id,) in rows}


def end(connection: Connection, ids: Sequence[int]) -> None:
    """These processes are gone: whatever they still hold is orphaned at once."""
    connection.execute(
        "UPDATE jobs_process SET ended_at = clock_timestamp(), "
        "lease_expires_at = least(lease_expires_at, clock_timestamp()) WHERE id = ANY(%s) AND ended_at IS NULL",
        [list(ids)],
    )
