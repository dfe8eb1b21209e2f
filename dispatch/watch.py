"""Watch over what a worker holds: timeouts, a lease in danger, and what the database says of its claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg

from dispatch.holdings import Holding, Holdings, Stop
from dispatch.pace import AHEAD_SECONDS
from jobs import arrays
from jobs.clock import boottime
from jobs.results import Cancelled, Held, Released, Result, Settlement

Connection = psycopg.Connection[Any]

_KNOWN = (
    "SELECT entry.job_id, entry.lease_token, entry.cancel_requested FROM unnest(%s::uuid[]) known(job_id) "
    "CROSS JOIN LATERAL (SELECT * FROM jobs_queueentry WHERE job_id = known.job_id LIMIT 1) entry"
)
_MINE = (
    "SELECT job_id, lease_token, process_id, job_type, attempt, max_attempts, crashes, tenant_id, concurrency_key "
    "FROM jobs_queueentry WHERE process_id = %s"
)

FULL_CHECK = 30.0
"""Seconds between two looks for claims of ours that we do not know. They come of a lost reply, and then the look is at
once: this is the net, since it reads everybody's claims."""


class Watch:
    def __init__(self, process_id: int, holdings: Holdings, settle: Callable[[Settlement], None]) -> None:
        self.process_id, self.holdings = process_id, holdings
        self._settle = settle
        self._unknown: set[tuple[UUID, UUID]] = set()
        self._full_at = float("-inf")

    @property
    def uncertain(self) -> bool:
        """The last reconciliation found claims of ours that we do not know."""
        return bool(self._unknown)

    def bodies(self) -> None:
        """Tell the late ones to stop, and all when two thirds of the lease have passed without a renewal."""
        now = boottime()
        slots = self.holdings.slots
        endangered = slots.lease_left(now) < slots.lease / 3
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

    def doubt(self) -> None:
        """A reply was lost: claims may be ours that we do not know."""
        self._full_at = float("-inf")

    def reconcile(self, connection: Connection) -> None:
        """Compare what we hold with what the database says, between two claims. Known but absent: lost. Flagged: tell
        the body. Present but unknown twice: a claim whose reply was lost, release it."""
        known = self.holdings.all()
        ids = arrays.uuids({holding.claim.held.job_id for holding in known})
        rows = connection.execute(_KNOWN, [ids], binary=True).fetchall() if known else []
        flags = {(job_id, token): flagged for job_id, token, flagged in rows}
        for holding in known:
            held = holding.claim.held
            flagged = flags.get((held.job_id, held.lease_token))
            if flagged:
                holding.stop(Stop.CANCEL)
                self.take_back(holding, Cancelled())
            elif flagged is None and self.holdings.of(held) is holding:
                holding.stop(Stop.LOST)
        if self.uncertain or boottime() >= self._full_at:
            self._find_unknown(connection)

    def _find_unknown(self, connection: Connection) -> None:
        unknown: set[tuple[UUID, UUID]] = set()
        mine = [Held.of(row) for row in connection.execute(_MINE, [self.process_id], binary=True).fetchall()]
        known = {
            (held.job_id, held.lease_token)
            for holding in self.holdings.all()
            for held in [holding.claim.held]
        }
        for held in mine:
            key = (held.job_id, held.lease_token)
            if key in known:
                continue
            if key in self._unknown:
                self._settle(Settlement(held, Released(), None))
            else:
                unknown.add(key)
        self._unknown = unknown
        self._full_at = boottime() + FULL_CHECK
