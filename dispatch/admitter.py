"""Admit: entries that wait for a concurrency key become ready as their time comes, and after what a crash left undone."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

import psycopg

from jobs.clock import boottime
from jobs.conf import conf
from jobs.leases import admit
from jobs.results import Key
from jobs.sql import load

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

SWEEP = 10.0
"""Seconds between two looks at all keys, or so many times as one takes:"""
SWEEP_SHARE = 20
PASS_SHARE = 2
"""Passes follow each other no faster than twice the time that they take."""
BACK = timedelta(seconds=2)
"""How far each look reaches back behind the one before: what was committed late is seen before the next sweep."""


class Admitter:
    """Whoever ends a job asks for the next of its key; here it is the time that comes. Several of these side by side do
    the same work twice and no harm."""

    name = "admit"

    def __init__(self, using: str = "default") -> None:
        self.using = using
        self.period = self._period = conf().period.total_seconds()
        self.batch = 1
        self._since: datetime | None = None
        self._swept, self._sweeping = -SWEEP, 0.0

    def run_once(self, connection: Connection, now: datetime) -> int:
        begun = boottime()
        keys, coming = self._due(connection, now)
        if boottime() - self._swept >= max(SWEEP, SWEEP_SHARE * self._sweeping):
            keys |= self._sweep(connection, now)
        admitted = admit(connection, keys, self.using) if keys else 0
        self._since = now
        wait = self._period if coming is None else (coming - now).total_seconds()
        self.period = min(self._period, max(0.001, wait, PASS_SHARE * (boottime() - begun)))
        if admitted:
            logger.debug("admitted", extra={"jobs": admitted, "keys": len(keys)})
        return 0

    def interrupted(self) -> None:
        self._swept = -SWEEP

    def _due(self, connection: Connection, now: datetime) -> tuple[set[Key], datetime | None]:
        """Keys whose waiting entries came due since the last look, and when the next one does."""
        values = {"since": (self._since or now) - BACK, "now": now}
        rows = connection.execute(load("keys_due"), values, prepare=True).fetchall()
        keys = {(tenant_id, name) for tenant_id, name, coming in rows if coming is None}
        return keys, next((coming for _, _, coming in rows if coming is not None), None)

    def _sweep(self, connection: Connection, now: datetime) -> set[Key]:
        begun = boottime()
        keys = set(connection.execute(load("keys_waiting"), {"now": now}).fetchall())
        self._swept = boottime()
        self._sweeping = self._swept - begun
        return keys
