"""What a handler does to its thread's database connections stays in its own attempt."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import psycopg
from django.db import close_old_connections, connections, reset_queries
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from psycopg.pq import PipelineStatus, TransactionStatus

from jobs.session import Counted

logger = logging.getLogger(__name__)

_numbers = count()
_ATTRIBUTES = (
    "autocommit",
    "isolation_level",
    "read_only",
    "deferrable",
    "row_factory",
    "cursor_factory",
    "server_cursor_factory",
    "prepare_threshold",
)
_fresh: WeakKeyDictionary[BaseDatabaseWrapper, tuple[Any, ...]] = WeakKeyDictionary()
"""The attributes of each connection as it was opened."""


class _Before(NamedTuple):
    """A connection as a body finds it."""

    raw: Any
    trips: int | None
    wrappers: list[Any]

    def used(self, raw: Any) -> bool:
        """Whether it was since, by whatever path: Django's or psycopg's. Those that count no round trips are taken for
        used."""
        return raw is not self.raw or self.trips is None or raw.trips != self.trips


_NOTHING: Mapping[str, _Before] = {}


class _Here(threading.local):
    connected = False
    """A connection was opened in this thread since `close_connections`."""


_here = _Here()


@receiver(connection_created)
def _note(sender: Any, connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    _here.connected = True
    raw = connection.connection
    if type(raw) is psycopg.Connection:
        raw.__class__ = Counted  # Django knows no setting for the class of its connections
    _fresh[connection] = _attributes(raw)


def _attributes(raw: Any) -> tuple[Any, ...]:
    """What a body can change on our side of a session, without a word to the server."""
    return tuple(getattr(raw, name, None) for name in _ATTRIBUTES)


class CleanConnections:
    """Run a body between clean connections: broken ones are closed before it, transactions it left open are rolled
    back after it, and session settings, temporary tables, listeners and advisory locks do not reach the next job.

    A body that finds no connection and opens none, as most do, costs next to nothing."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = _found() if _here.connected else _NOTHING

    def __exit__(self, *error: object) -> None:
        if _here.connected:
            _clean(self._before)


def _found() -> dict[str, _Before]:
    """The connections of this thread, those that still work."""
    close_old_connections()
    reset_queries()
    return {
        connection.alias: _Before(
            connection.connection,
            getattr(connection.connection, "trips", None),
            [*connection.execute_wrappers],
        )
        for connection in connections.all(initialized_only=True)
    }


def close_connections() -> None:
    """A thread that is idle does not keep its bodies' connections open."""
    connections.close_all()
    _here.connected = False


def _clean(before: Mapping[str, _Before]) -> None:
    for connection in connections.all(initialized_only=True):
        known = before.get(connection.alias)
        if known is not None:
            connection.execute_wrappers[:] = known.wrappers
        raw = connection.connection
        if raw is not None and (known is None or known.used(raw) or not _sound(connection)):
            _reset(connection)


def _sound(connection: BaseDatabaseWrapper) -> bool:
    """No transaction, copy or pipeline is under way, and the next begins as it would on a new connection."""
    raw = connection.connection
    if connection.in_atomic_block or not connection.get_autocommit():
        return False
    if not isinstance(raw, psycopg.Connection):
        return True
    return (
        raw.pgconn.transaction_status == TransactionStatus.IDLE
        and raw.pgconn.pipeline_status == PipelineStatus.OFF
        and _attributes(raw) == _fresh.get(connection)
    )


def _reset(connection: BaseDatabaseWrapper) -> None:
    try:
        if not _sound(connection):
            logger.warning(
                "a body left its connection in use or changed", extra={"database": connection.alias}
            )
            _drop(connection)
        elif connection.vendor == "postgresql":
            # A new text each time: psycopg forgets what it had prepared only by a statement it has not seen before.
            connection.connection.execute(f"DISCARD ALL -- {next(_numbers)}")
            _begin(connection)
    except Exception as error:
        logger.info(
            "a body's connection was closed", extra={"database": connection.alias, "error": str(error)}
        )
        _drop(connection)


def _begin(connection: Any) -> None:
    """What Django does with a session that it has just opened: its time zone and role, and whatever receivers of
    `connection_created` say to it (a search_path, a timeout)."""
    connection.init_connection_state()
    if connection.pool:  # which does this when it opens a session, and never again
        connection._configure_connection(connection.connection)
    wrappers = [*connection.execute_wrappers]
    connection_created.send(sender=type(connection), connection=connection)
    connection.execute_wrappers[:] = wrappers  # there since the session was opened


def _drop(connection: BaseDatabaseWrapper) -> None:
    """Close whatever state it is in: the server rolls back. The session itself first: a pool would keep it as it is."""
    with suppress(Exception):
        connection.connection.close()
    connection.in_atomic_block = False
    connection.savepoint_ids = []
    connection.needs_rollback = False
    connection.run_on_commit = []
    connection.close()
