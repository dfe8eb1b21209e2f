"""What a worker takes in: when its queues have something due, and claims of it, in turn."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import psycopg

from dispatch.noise import Noise
from dispatch.reserve import Reserve
from dispatch.starts import AHEAD
from jobs.clock import DatabaseClock, boottime
from jobs.conf import conf
from jobs.leases import Claimer, Line, Looks, Relayed, fetch, may_relay, park, relay
from jobs.leases.park import BATCH as PARKED
from jobs.results import Claim, Settlement

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

PARK_SECONDS, PARK_SHARE = 1.0, 20
"""Seconds between two tries to park due entries of types unknown here, or so many times as one took."""


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
        self._park_at = float("-inf")
        self._reserve = Reserve()
        self._woke_for: set[str] = set()
        """Queues in which something came due as known beforehand."""

    @property
    def waiting(self) -> bool:
        """Something is known that may be claimed, now or when a limit allows."""
        return any(each.waiting or each.door.shut_for is not None for each in self._claimers.values())

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
        late = self._arrive()
        if late or self._due:
            self._look(connection)
        ready = [name for name, claimer in self._claimers.items() if claimer.waiting]
        random.shuffle(ready)
        return ready

    def claim(
        self,
        connection: Connection,
        queue: str,
        size: int,
        free: int,
        noise: Noise | None = None,
        room: int | None = None,
    ) -> tuple[list[Claim], list[Claim]]:
        """Up to `size` claims of one queue; second, those whose job row is missing. `free`: how many of them may be
        such that must start at once; `noise`: how many may be of one tenant; `room`: for so many characters of large
        payloads: claims beyond come without theirs."""
        claims, missing = fetch(connection, self._claimers[queue].claim(connection, size, free, noise), room)
        if claims:
            self._reserve.won()
        elif queue in self._woke_for:
            self._reserve.lost()
        self._woke_for.discard(queue)
        return claims, missing

    def relay(
        self, connection: Connection, queue: str, tenant_id: int, ended: Sequence[Settlement]
    ) -> Relayed | None:
        """Settle what has ended of a tenant at its limit, and claim its next entries in the same places; None when that
        is not for us to do: settle and claim."""
        claimer = self._claimers[queue]
        if any(each.greedy for each in self._claimers.values()) or not may_relay(claimer, tenant_id, ended):
            return None
        relayed = relay(connection, claimer, tenant_id, ended)
        if relayed is not None and len(relayed.claims) < len(ended):
            claimer.settled(tenant_id)
        return relayed

    def idle_for(self, connection: Connection) -> float:
        """Seconds until something may be due or claimable, at most until the next poll."""
        if self._due:
            self._look(connection)
        self._arrive()
        limit = min(conf().idle_poll.total_seconds(), max(0.05, self._looks.wide_in()))
        now = self.clock.now()
        for claimer in self._claimers.values():
            if claimer.claimable:
                return 0.0
            if (soon := claimer.retry_in()) is not None:
                limit = min(limit, max(0.005, soon))
            if (at := self._wake_at(claimer.line)) is not None:
                limit = min(limit, max(0.0, (at - now).total_seconds()))
        return limit

    @property
    def _due(self) -> bool:
        """Whether to look; a little later while something is known that may be claimed, now or when a limit allows."""
        return self._looks.due(busy=self.waiting)

    def _arrive(self) -> bool:
        """Let in what is due as known beforehand; True when something may be due that we stand back from: look."""
        now, late = self.clock.now(), False
        for name, claimer in self._claimers.items():
            if (at := self._wake_at(claimer.line)) is None or at > now:
                continue
            if self._lag(claimer.line) or not claimer.line.coming:
                late = True
            else:
                claimer.line.arrive(now)
                self._woke_for.add(name)
        return late

    def _lag(self, line: Line) -> float:
        return 0.0 if line.crowd else self._reserve.lag

    def _wake_at(self, line: Line) -> datetime | None:
        """When to do something for what is coming: claim it ahead, or see whether it is still there."""
        if lag := self._lag(line):
            return line.due_at + timedelta(seconds=lag) if line.due_at else None
        return line.next_at

    def _look(self, connection: Connection) -> None:
        """Those in reserve learn whether they were needed."""
        heads = [(line, line.due_at) for line in self._looks.lines.values() if self._lag(line)]
        self._looks.look(connection)
        now = self.clock.now()
        if any(head is not None and head < now and not len(line.ring) for line, head in heads):
            self._reserve.lost()
        self._park(connection)

    def _park(self, connection: Connection) -> None:
        """What no live process knows leaves the claims' way."""
        for line in self._looks.lines.values():
            begun = boottime()
            if not line.unknown or begun < self._park_at:
                continue
            parked = park(connection, line.queue)
            line.unknown = parked.total() >= PARKED  # there may be more
            self._park_at = begun + max(PARK_SECONDS, PARK_SHARE * (boottime() - begun))
            if parked:
                logger.warning("parked unknown types", extra={"queue": line.queue, "types": dict(parked)})
