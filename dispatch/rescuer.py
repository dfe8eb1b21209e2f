"""Rescue: claims whose process is gone come back. Acts only on what it has watched for a full lease."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

import psycopg

from jobs.clock import boottime
from jobs.conf import conf
from jobs.leases import admit, rescue
from jobs.leases.rescue import BATCH
from jobs.signals import tell_settled

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

JUMP = 1.0
"""Seconds by which the database's clock may differ from elapsed time before it counts as a jump."""


class Rescuer:
    """After an outage, a failover or a jump of the database's clock every lease looks expired at once: so it waits
    for one lease of uninterrupted contact of its own, in which the living renew theirs."""

    name = "rescue"

    def __init__(self) -> None:
        self.lease = conf().lease.total_seconds()
        self.period = min(2.0, self.lease / 5)
        self.batch = BATCH
        self._since: float | None = None
        self._last: tuple[float, datetime] | None = None

    def run_once(self, connection: Connection, now: datetime) -> int:
        if not self._watched(now):
            return 0
        rescued = rescue(connection)
        if rescued.batch:
            admit(connection, rescued.keys)
            logger.warning("rescued", extra={"jobs": len(rescued.fates)})
            tell_settled(Rescuer, rescued)
        return len(rescued.batch)

    def interrupted(self) -> None:
        self._since = self._last = None

    def _watched(self, now: datetime) -> bool:
        here = boottime()
        if self._last is not None:
            elapsed, told = here - self._last[0], (now - self._last[1]).total_seconds()
            if elapsed > self.lease / 2 or abs(told - elapsed) > JUMP:
                self._since = None
        self._last = (here, now)
        if self._since is None:
            self._since = here
        return here - self._since >= self.lease
