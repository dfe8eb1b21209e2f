"""Connections that bodies have left open: in threads of their own, which nobody else can close. They are told, since
they end with "too many clients"."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import psycopg
from django.db import connections

from jobs.db import databases

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

OWN = 2
"""Sessions of a child beside those of its bodies: the one that claims and the settler's."""
_COUNT = (
    "SELECT application_name, count(*) FROM pg_stat_activity WHERE application_name = ANY(%s) "
    "AND usename = session_user AND datname = ANY(%s) GROUP BY application_name"
)


class Leaks:
    """Of a supervisor's children."""

    def __init__(self, threads: int) -> None:
        databases = sum(each.vendor == "postgresql" for each in connections.all())
        self.most = OWN + threads * databases
        """Of one child, but for moments in which a body has one more beside."""
        self._over: set[str] = set()

    def look(self, connection: Connection, names: Iterable[str]) -> None:
        """Warn of each that has too many at this look and had at the last one."""
        counts = dict(connection.execute(_COUNT, [list(names), databases(connection)]).fetchall())
        over = {name for name, count in counts.items() if count > self.most}
        for name in sorted(over & self._over):
            logger.warning(
                "bodies have left connections open",
                extra={"application": name, "sessions": counts[name], "expected": self.most},
            )
        self._over = over
