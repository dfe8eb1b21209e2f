"""Own psycopg connections on Django's settings, for the loops and for DDL. Django's own binds on the client and
belongs to its thread's transaction; these are in autocommit, bind on the server and speak UTC.

Only the few hot statements that ask for it are prepared, and only where no pooler stands between: their plans are the
same whatever the statistics say (tests/schema/test_query_plans.py). Any other is planned with its values and with the
tables' present size: a kept plan made while the queue was empty would be used on the burst that follows.
"""

from __future__ import annotations

from typing import Any

import psycopg
from django.db import connections

from jobs.conf import conf
from jobs.patience import watch
from jobs.session import Session

INFRASTRUCTURE = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.InternalError)
"""Errors that say something of the server (gone, full, read-only, out of time), nothing of what was asked of it."""
BROKEN = (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted, psycopg.errors.InternalError_)
"""Errors of class XX, though they are among those: of one page or row as likely as of all, so others are tried without it."""
LOCK_SHARE = 1 / 6
"""Of its patience a session waits for a lock: the server says which statement it was, and the session lives on."""
_NEVER = 1 << 31
"""Executions after which psycopg prepares a statement by itself."""
DIRECT_ALIAS = "direct"
"""Django alias of the unpooled address (LISTEN, DDL, VACUUM); falls back to the database itself."""


def is_pooled(using: str) -> bool:
    """Whether a transaction pooler may stand between: then a session keeps nothing, and has a direct address beside."""
    return using == "default" and DIRECT_ALIAS in connections.settings


def databases(connection: psycopg.Connection[Any]) -> list[str]:
    """The names of this connection's database and of those in the settings. A session elsewhere on the server that is
    called as one of ours is another installation's: each database numbers its processes from 1 on."""
    named = [str(each.settings_dict["NAME"]) for each in connections.all() if each.vendor == "postgresql"]
    return [connection.info.dbname, *named]


def connect(
    using: str = "default",
    *,
    direct: bool = False,
    name: str = "punctual",
    generic: bool = False,
    patience: float | None = None,
) -> psycopg.Connection[Any]:
    """Open a connection of our own. `name` is its application_name, by which a supervisor finds a child's sessions.
    `generic`: plan what has parameters once for all values. Only for sessions whose statements name no partitioned
    parent and have one plan whatever the statistics say. `patience`: seconds that one round trip may take before the
    connection is cut, as a server that has fallen silent, and a sixth of it for a lock; None: for ever.
    psycopg.OperationalError when the server cannot be reached."""
    pooled = is_pooled(using) and not direct
    alias = DIRECT_ALIAS if direct and is_pooled(using) else using
    params = connections[alias].get_connection_params()
    for ours in ("context", "cursor_factory", "prepare_threshold"):
        params.pop(ours, None)
    params["application_name"] = name[:63]
    connection = Session.connect(**params, autocommit=True, prepare_threshold=None if pooled else _NEVER)
    if patience is not None:  # from the first statement on: a server may fall silent before it
        watch(connection, patience)
    # Whatever the role's default: a count that a limit is judged by must see what was committed before its lock.
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    if not pooled:
        # Compiling a statement takes longer than any of ours runs; of partitions without statistics the planner thinks it
        # would pay.
        connection.execute("SET default_transaction_isolation = 'read committed'; SET jit = off")
    connection.bound_idleness(conf().lease.total_seconds(), kept=not pooled)
    if patience is not None:
        connection.bound_locks(patience * LOCK_SHARE, kept=not pooled)
    if generic and not pooled:
        # A plan that was made while a table had one page must not read it whole when it has a million rows, nor all of a
        # tenant's entries to sort out the first ten. What is asked one by one is different each time: nothing to remember.
        connection.execute(
            "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; "
            "SET enable_memoize = off"
        )
    if role := connections[alias].settings_dict["OPTIONS"].get("assume_role"):  # as Django does on its own
        connection.execute("SELECT set_config('role', %s, false)", [role])
    if connection.info.parameter_status("TimeZone") != "UTC":
        connection.execute("SET TIME ZONE 'UTC'")
    return connection


def tells_commits(using: str) -> bool:
    """Whether Django calls who waits for the caller's commit. Not where he manages transactions by hand: there hints are
    left out, which polls and sweeps can do without."""
    connection = connections[using]
    return connection.in_atomic_block or connection.get_autocommit()


def server_cursor(using: str) -> Any:
    """Django's cursor, with its checks, logs and wrappers, that binds on the server; so it prepares what comes again
    and again, where OPTIONS["prepare_threshold"] allows it."""
    connection: Any = connections[using]
    connection.ensure_connection()
    return connection._prepare_cursor(psycopg.Cursor(connection.connection))


class ServerBound:
    """Django's own connection for the statements of the loops: Django binds on the client, where arrays in binary
    cannot go."""

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self._raw = raw

    def execute(self, query: Any, params: Any = None, **options: Any) -> psycopg.Cursor[Any]:
        return psycopg.Cursor(self._raw).execute(query, params, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)
