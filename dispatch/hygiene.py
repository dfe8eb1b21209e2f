"""What a handler does to its thread's database connections stays in its own attempt."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any

from django.db import close_old_connections, connections, reset_queries
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from psycopg.pq import TransactionStatus

logger = logging.getLogger(__name__)

_numbers = count()


class _Used:
    """Notes which connections a body used: only those need to be reset."""

    def __init__(self) -> None:
        self.aliases: set[str] = set()

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        self.aliases.add(context["connection"].alias)
        return execute(sql, params, many, context)


class _Here(threading.local):
    connected = False
    """A connection was opened in this thread since `close_connections`."""


_here = _Here()


@receiver(connection_created)
def _note(sender: Any, **kwargs: Any) -> None:
    _here.connected = True


@contextmanager
def clean_connections() -> Iterator[None]:
    """Run a body between clean connections: broken ones are closed before it, transactions it left open are rolled
    back after it, and session settings, temporary tables, listeners and advisory locks do not reach the next job."""
    if not _here.connected:  # nothing to clean before, and most often nothing after: it costs a job nothing
        try:
            yield
        finally:
            if _here.connected:
                _clean({}, set())
        return
    close_old_connections()
    reset_queries()
    before = {connection.alias: connection for connection in connections.all(initialized_only=True)}
    used = _Used()
    try:
        with ExitStack() as stack:
            for connection in before.values():
                stack.enter_context(connection.execute_wrapper(used))
            yield
    finally:
        _clean(before, used.aliases)


def close_connections() -> None:
    """A thread that is idle does not keep its bodies' connections open."""
    connections.close_all()
    _here.connected = False


def _clean(before: Mapping[str, Any], used: Set[str]) -> None:
    for connection in connections.all(initialized_only=True):
        if connection.alias in used or connection.alias not in before or not _idle(connection):
            _reset(connection)


def _idle(connection: BaseDatabaseWrapper) -> bool:
    raw = connection.connection
    return raw is None or (
        not connection.in_atomic_block
        and connection.get_autocommit()
        and getattr(getattr(raw, "info", None), "transaction_status", None) == TransactionStatus.IDLE
    )


def _reset(connection: BaseDatabaseWrapper) -> None:
    try:
        if not _idle(connection):
            logger.warning("a body left a transaction open", extra={"database": connection.alias})
            _drop(connection)
        elif connection.connection is not None and connection.vendor == "postgresql":
            # A new text each time: psycopg forgets what it had prepared only by a statement it has not seen before.
            connection.connection.execute(f"DISCARD ALL -- {next(_numbers)}")
            connection.init_connection_state()
    except Exception as error:
        logger.info(
            "a body's connection was closed", extra={"database": connection.alias, "error": str(error)}
        )
        _drop(connection)


def _drop(connection: BaseDatabaseWrapper) -> None:
    """Close whatever state it is in: the server rolls back."""
    connection.in_atomic_block = False
    connection.savepoint_ids = []
    connection.needs_rollback = False
    connection.run_on_commit = []
    connection.close()
