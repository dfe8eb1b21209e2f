"""What a worker takes in: when its queues have something due, and claims of it, in turn."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import psycopg

from jobs.clock import DatabaseClock, boottime
from jobs.conf import conf
from jobs.leases import Claimer, Taken, fetch, park
from jobs.results import Claim
from jobs.sql import load

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

LOOK = 0.1
"""Seconds for which a look at the queues is trusted while claims succeed."""
NOT_OURS = 0.25
"""Seconds between looks while something is due that this worker may not take."""


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
        self._claimers = {
            name: Claimer(name, process_id, types, suspects=suspects, clock=clock) for name in queues
        }
        self._heads: dict[str, datetime | None] = {}
        """When each queue's next entry may run, as of the last look."""
        self._looked = float("-inf")

    def forget(self) -> None:
        """Look before the next claim."""
        self._looked = float("-inf")

    def settled(self, queue: str, tenant_id: int) -> None:
        """A slot of this tenant has become free by our own doing."""
        self._claimers[queue].settled(tenant_id)

    def ready(self, connection: Connection) -> list[str]:
        """Queues that have something due, in random order: a worker of many must not starve the last."""
        if boottime() - self._looked >= LOOK:
            self._look(connection)
        return self._ready()

    def claim(
        self, connection: Connection, queue: str, size: int, free: int
    ) -> tuple[list[Claim], list[Taken]]:
        """Up to `size` claims of one queue; second, those whose job row is missing. `free`: how many of them may be
        such that must start at once."""
        claimer = self._claimers[queue]
        taken = claimer.claim(connection, size, free)
        if claimer.met_unknown and (parked := park(connection, queue)):
            logger.warning("parked unknown types", extra={"queue": queue, "types": dict(parked)})
        return fetch(connection, queue, taken) if taken else ([], [])

    def idle_for(self, connection: Connection, *, any_ready: bool) -> float:
        """Seconds until something may be due or claimable, at most until the next poll. After claims that gave nothing
        it looks again, so that it knows the next run time."""
        if any_ready:
            self._look(connection)
        limit = conf().idle_poll.total_seconds()
        now = self.clock.now()
        for name, head in self._heads.items():
            if head is None:
                continue
            if (wait := (head - now).total_seconds()) > 0:
                limit = min(limit, wait)
            else:
                soon = self._claimers[name].retry_in()
                limit = min(limit, NOT_OURS if soon is None else max(0.005, soon))
        return limit

    def _ready(self) -> list[str]:
        now = self.clock.now()
        ready = [name for name, head in self._heads.items() if head is not None and head <= now]
        random.shuffle(ready)
        return ready

    def _look(self, connection: Connection) -> None:
        self._looked = boottime()  # before the look: a forget() during it counts
        rows = connection.execute(load("next_run"), {"queues": list(self._claimers)}).fetchall()
        self._heads = {name: run_at for name, run_at, _ in rows}
        if rows:
            self.clock.observe(rows[0][2])
