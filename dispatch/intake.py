"""What a worker takes in: when its queues have something due, and claims of it, in turn."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import psycopg

from dispatch.starts import AHEAD
from jobs.clock import DatabaseClock, boottime
from jobs.conf import conf
from jobs.leases import Claimer, Looks, fetch, park
from jobs.results import Claim

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

PARK_SECONDS = 1.0
"""Seconds between two tries to park due entries of types unknown here."""


class Intake:
    def __init__(
        self,
        queues: Sequence[str],
        process_id: int,
        types: Sequence[str],
        clock: DatabaseClock,
        *,
        suspects: bool,
    ) -> None:
        self.clock = clock
        self._looks = Looks(queues, types, suspects=suspects, clock=clock)
        self._claimers = {
            name: Claimer(
                name,
                process_id,
                types,
                suspects=suspects,
                looks=self._looks,
                ahead=timedelta() if suspects else AHEAD,
            )
            for name in queues
        }
        self._parked_at = float("-inf")

    def forget(self) -> None:
        """Look before the next claim. From any thread."""
        self._looks.forget()

    def restart(self) -> None:
        """The connection is new: trust nothing that was seen on the old one."""
        self._looks.restart()

    def settled(self, queue: str, tenant_id: int) -> None:
        """A slot of this tenant has become free by our own doing. From any thread."""
        self._claimers[queue].settled(tenant_id)

    def ready(self, connection: Connection) -> list[str]:
        """Queues that may have something to claim, in random order: a worker of many must not starve the last."""
        self._arrive()
        if self._looks.due(busy=any(claimer.waiting for claimer in self._claimers.values())):
            self._looks.look(connection)
            self._park(connection)
        ready = [name for name, claimer in self._claimers.items() if claimer.waiting]
        random.shuffle(ready)
        return ready

    def claim(
        self, connection: Connection, queue: str, size: int, free: int
    ) -> tuple[list[Claim], list[Claim]]:
        """Up to `size` claims of one queue; second, those whose job row is missing. `free`: how many of them may be
        such that must start at once."""
        return fetch(connection, self._claimers[queue].claim(connection, size, free))

    def idle_for(self, connection: Connection) -> float:
        """Seconds until something may be due or claimable, at most until the next poll."""
        if self._looks.due(busy=False):
            self._looks.look(connection)
            self._park(connection)
        self._arrive()
        limit = conf().idle_poll.total_seconds()
        now = self.clock.now()
        for claimer in self._claimers.values():
            if len(claimer.ring):
                return 0.0
            if (soon := claimer.retry_in()) is not None:
                limit = min(limit, max(0.005, soon))
            if (head := claimer.line.next_at) is not None:
                limit = min(limit, max(0.0, (head - now).total_seconds()))
            elif claimer.line.more:
                limit = min(limit, self._looks.next_in())
        return limit

    def _arrive(self) -> None:
        now = self.clock.now()
        for claimer in self._claimers.values():
            if claimer.line.coming:
                claimer.line.arrive(now)

    def _park(self, connection: Connection) -> None:
        """What no live process knows leaves the claims' way."""
        for line in self._looks.lines.values():
            if not line.unknown or boottime() - self._parked_at < PARK_SECONDS:
                continue
            line.unknown, self._parked_at = False, boottime()
            if parked := park(connection, line.queue):
                logger.warning("parked unknown types", extra={"queue": line.queue, "types": dict(parked)})
