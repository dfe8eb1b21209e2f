"""Admit: entries that wait for a concurrency key become ready, as many as it has room for.

An entry with a key is born waiting for it, and waits for it again whenever it is put back for later. Whoever inserted one
that is due, and whoever ended one, asks for an admission after the commit; what a crash leaves out, a dispatcher finds.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import psycopg

from jobs import arrays, notify
from jobs.registry import JobType
from jobs.results import Key
from jobs.sql import load

Connection = psycopg.Connection[Any]

BATCH = 100
"""Keys of one transaction: a lock each."""


def admit(connection: Connection, keys: Iterable[Key], using: str = "default") -> int:
    """Fill the room of these keys; returns how many entries became ready. A transaction of its own for every hundred
    keys, one round trip each; the caller has none open."""
    todo, admitted = sorted(set(keys)), 0
    for start in range(0, len(todo), BATCH):
        admitted += _admit(connection, todo[start : start + BATCH])
    if admitted and notify.due(using):
        connection.execute(f"NOTIFY {notify.CHANNEL}")
    return admitted


def _admit(connection: Connection, keys: list[Key]) -> int:
    with connection.pipeline(), connection.transaction():
        # A snapshot of the whole transaction would be older than the lock.
        connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        connection.execute(load("lock_keys"), {"hashes": arrays.int8s([_hash(key) for key in keys])})
        values = {
            "tenants": arrays.int8s([tenant_id for tenant_id, _ in keys]),
            "names": [name for _, name in keys],
        }
        cursor = connection.execute(load("admit"), values)
    return cursor.rowcount


def _hash(key: Key) -> int:
    """Of 64 bits: two keys that share one would only wait for each other."""
    tenant_id, name = key
    return int.from_bytes(blake2b(f"{tenant_id} {name}".encode(), digest_size=8).digest(), "big", signed=True)


def declare(connection: Connection, types: Iterable[JobType]) -> None:
    """Tell the database how many of each type may run at once with one key, where that is not one; whoever asks for an
    admission need not know the type. Holds for admissions from now on."""
    known = sorted((each.name, each.concurrency) for each in types)
    connection.execute(
        "INSERT INTO jobs_keylimit (job_type, most, changed_at) "
        "SELECT name, known.most, clock_timestamp() FROM unnest(%s::text[], %s::int[]) known(name, most) "
        "WHERE known.most <> 1 OR name IN (SELECT job_type FROM jobs_keylimit) ORDER BY name "
        "ON CONFLICT (job_type) DO UPDATE SET most = excluded.most, changed_at = excluded.changed_at "
        "WHERE jobs_keylimit.most <> excluded.most",
        [[name for name, _ in known], [most for _, most in known]],
    )
