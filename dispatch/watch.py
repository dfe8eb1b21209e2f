"""Watch over what a worker holds: timeouts, a lease in danger, and what the database says of its claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg

from dispatch.holdings import Holding, Holdings, Stop
from dispatch.pace import AHEAD_SECONDS
from jobs.clock import boottime
from jobs.conf import conf
from jobs.results import Cancelled, Held, Released, Result, Settlement

Connection = psycopg.Connection[Any]

_MINE = (
    "SELECT job_id, due_at, lease_token, process_id, job_type, attempt, max_attempts, crashes, cancel_requested "
    "FROM jobs_queueentry WHERE process_id = %s"
)


class Watch:
    def __init__(self, process_id: int, holdings: Holdings, settle: Callable[[Settlement], None]) -> None:
        self.process_id, self.holdings = process_id, holdings
        self._settle = settle
        self._unknown: set[UUID] = set()

    @property
    def uncertain(self) -> bool:
        """The last reconciliation found claims of ours that we do not know."""
        return bool(self._unknown)

    def bodies(self) -> None:
        """Tell the late ones to stop, and all when two thirds of the lease have passed without a renewal."""
        now = boottime()
        endangered = now - self.holdings.slots.renewed_at > conf().lease.total_seconds() * 2 / 3
        for holding in self.holdings.all():
            if holding.started_at is None:
                continue
            if now > holding.soft_deadline:
                holding.stop(Stop.TIMEOUT)
            if endangered:
                holding.stop(Stop.LEASE)

    def buffer(self) -> None:
        """Give back what has waited for a thread for too long, uncounted."""
        now = boottime()
        for holding in self.holdings.buffered():
            if now - holding.claimed_at > AHEAD_SECONDS:
                self.take_back(holding, Released())

    def take_back(self, holding: Holding, result: Result) -> None:
        """Settle a claim whose body has not started; the thread that finds it in its queue passes it over."""
        if self.holdings.leave_buffer(holding):
            self._settle(Settlement(holding.claim.held, result, None))

    def reconcile(self, connection: Connection) -> None:
        """Compare what we hold with what the database says, between two claims. Known but absent: lost. Present but
        unknown twice: a claim whose reply was lost, release it. Flagged: tell the body."""
        known = {holding.claim.held.lease_token: holding for holding in self.holdings.all()}
        present: set[UUID] = set()
        unknown: set[UUID] = set()
        for *fields, flagged in connection.execute(_MINE, [self.process_id]).fetchall():
            held = Held(*fields)
            present.add(held.lease_token)
            holding = known.get(held.lease_token)
            if holding is None and held.lease_token in self._unknown:
                self._settle(Settlement(held, Released(), None))
            elif holding is None:
                unknown.add(held.lease_token)
            elif flagged:
                holding.stop(Stop.CANCEL)
                self.take_back(holding, Cancelled())
        self._unknown = unknown
        for token, holding in known.items():
            if token not in present and self.holdings.get(holding.claim.held.job_id) is holding:
                holding.stop(Stop.LOST)
