"""Operate: chunks of operators' bulk operations, one after the other. A loop of its own: no upkeep holds it up."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

import psycopg
from django.db import DatabaseError, connections

from jobs import operations
from jobs.operations.run import give_up

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)


_DUE = (
    "SELECT EXISTS (SELECT FROM jobs_operation WHERE state IN ('queued', 'probing', 'running') "
    "AND next_at <= clock_timestamp())"
)


class Operations:
    name = "operate"
    period = 1.0
    batch = 1

    def __init__(self, using: str = "default") -> None:
        self.using = using

    def run_once(self, connection: Connection, now: datetime) -> int:
        """One chunk; 1: there may be more to do at once."""
        if not self._is_due(connection):
            return 0
        try:
            looked = operations.run_chunk(self.using)
        except DatabaseError:
            raise  # a lost connection or a conflict: the shell waits and tries again
        except Exception as error:
            logger.exception("an operation cannot go on")
            return int(give_up(self.using, error))
        if looked:
            logger.info("operated", extra={"jobs": looked})
        return 0 if looked is None else 1

    def _is_due(self, connection: Connection) -> bool:
        """Most often nothing is: one round trip instead of a transaction on Django's connection."""
        row = connection.execute(_DUE, prepare=True).fetchone()
        return bool(row and row[0])

    def interrupted(self) -> None:
        """Everything is in the tables. Django's connection may be as dead as the loop's."""
        connections[self.using].close()
