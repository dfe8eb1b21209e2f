"""Claim: take due entries of a queue, fairly between tenants and within limits, each under a new lease token.

Two round trips, three with limits: hop over the tenants that have something due, going round from a cursor; lock the
limited ones; take. All of a claimer's memory may be lost at any time: it only says where to go on and what to pass.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psycopg

from jobs.clock import DatabaseClock
from jobs.errors import SchedulerError
from jobs.results import Held
from jobs.sql import load

Connection = psycopg.Connection[Any]

HOPS = 256
"""Most pairs one claim looks at; a claim that stopped there goes on at once from the cursor."""
PASS_SECONDS = 1.0
"""How long a pair whose due entries gave nothing (types unknown here) is passed over."""
FULL_SECONDS = 0.02
"""How long a tenant at its limit is passed over; an own settle brings it back at once."""
BUSY_SECONDS = (0.005, 0.02)
"""How long a tenant that another claimer has locked is passed over."""

SUSPECT = 2
"""Crashes from which on an entry runs in a process of its own, where it can harm no other. A constant in claim.sql,
suspects.sql and the index too."""


class ProcessExpired(SchedulerError):
    """The lease of this process ended: register anew, under another id."""


class Pair(NamedTuple):
    tenant_id: int
    priority: int
    weight: int
    limited: bool


@dataclass(slots=True)
class Taken:
    """A claimed entry, before its payload was fetched."""

    held: Held
    tenant_id: int
    priority: int
    group: str | None
    limited: bool


@dataclass
class Claimer:
    """One queue's claims by one process. Not thread-safe; uses its connection in autocommit."""

    queue: str
    process_id: int
    types: Sequence[str]
    suspects: bool = False
    """Claim only entries that crashed their process twice, instead of all others."""
    clock: DatabaseClock = field(default_factory=DatabaseClock)
    _after: int | None = None
    _passed: dict[tuple[int, int], float] = field(default_factory=dict)
    _full: dict[int, float] = field(default_factory=dict)
    _queue_limited: bool = False
    met_unknown: bool = False
    """The last claim met due entries of types unknown here: have them parked."""

    def claim(self, connection: Connection, size: int, free: int) -> list[Taken]:
        """Up to `size` entries; at most `free` of those that must start at once. What one look found is returned at
        once; nothing only after a full round found nothing. ProcessExpired when our lease has ended."""
        self.met_unknown = False
        ends = 0
        while ends < 2:  # the first end may only be that of the tenants behind the cursor
            pairs, end = self._hop(connection, size)
            limited = self._queue_limited
            if pairs and (taken := self._take(connection, pairs, size, free)):
                return taken
            if pairs and self._queue_limited:
                if limited:
                    break  # the queue is full
                continue  # its limit has just been learnt: once more, under its lock
            ends += end
        return []

    def retry_in(self) -> float | None:
        """Seconds until a tenant that was full or locked is worth another look; None when there is none."""
        if self._queue_limited:
            return FULL_SECONDS
        return max(0.0, min(self._full.values()) - time.monotonic()) if self._full else None

    def settled(self, tenant_id: int) -> None:
        """A slot of this tenant has become free by our own doing."""
        self._full.pop(tenant_id, None)

    def _hop(self, connection: Connection, wanted: int) -> tuple[list[Pair], bool]:
        """Ready pairs from the cursor on, and whether the last tenant was reached."""
        if self._after is None:
            self._after = random.getrandbits(10)  # claimers do not start in step
        now = time.monotonic()
        self._passed = {pair: until for pair, until in self._passed.items() if until > now}
        self._full = {tenant: until for tenant, until in self._full.items() if until > now}
        rows = connection.execute(
            load("hop"),
            {
                "queue": self.queue,
                "after": self._after,
                "hops": HOPS,
                "wanted": wanted,
                "passed_tenants": [tenant for tenant, _ in self._passed],
                "passed_priorities": [priority for _, priority in self._passed],
                "full": list(self._full),
            },
        ).fetchall()
        pairs = [
            Pair(tenant, priority, weight, limited)
            for tenant, priority, ready, weight, limited in rows
            if ready
        ]
        end = len(rows) < HOPS and len(pairs) < wanted
        if end:
            self._after = 0
        else:
            tenant, _, ready, _, _ = rows[-1]
            self._after = tenant if ready else tenant - 1  # a tenant cut off in its priorities is begun again
        return pairs, end

    def _take(self, connection: Connection, pairs: list[Pair], size: int, free: int) -> list[Taken]:
        chosen = _shares(pairs, size)
        if len(chosen) < len(pairs):
            self._after = chosen[-1][0].tenant_id  # who was cut off goes first next time
        limited = [pair.tenant_id for pair, _ in chosen if pair.limited]
        values: dict[str, Any] = {
            "queue": self.queue,
            "process_id": self.process_id,
            "types": list(self.types),
            "suspects": self.suspects,
            "size": size,
            "free": max(0, free),
            "tenants": [pair.tenant_id for pair, _ in chosen],
            "priorities": [pair.priority for pair, _ in chosen],
            "shares": [share for _, share in chosen],
            "locked": [],
            "queue_locked": False,
        }
        if not limited and not self._queue_limited:
            rows = connection.execute(load("claim"), values).fetchall()
            return self._read(rows)
        with connection.transaction():
            values |= self._lock(connection, limited)
            rows = connection.execute(load("claim"), values).fetchall()
        return self._read(rows)

    def _lock(self, connection: Connection, limited: list[int]) -> dict[str, Any]:
        """Queue before tenants, tenants in id order."""
        queue_locked = False
        if self._queue_limited:
            queue_locked = (
                connection.execute(load("lock_queue"), {"queue": self.queue}).fetchone() is not None
            )
        rows = connection.execute(load("lock_tenants"), {"limited": limited}).fetchall() if limited else []
        locked = [tenant for (tenant,) in rows]
        for tenant in set(limited) - set(locked):
            self._full[tenant] = time.monotonic() + random.uniform(*BUSY_SECONDS)  # noqa: S311
        return {"locked": locked, "queue_locked": queue_locked}

    def _read(self, rows: list[tuple[Any, ...]]) -> list[Taken]:
        taken: list[Taken] = []
        pairs: dict[tuple[int, int], tuple[int, int]] = {}
        room, queue_limited = 0, False
        for row in rows:
            tenant, priority, allowed, seen, limited, room, queue_limited = row[:7]
            pairs[tenant, priority] = allowed, seen
            job_id, due_at, token, kind, attempt, most, crashes, group, now = row[7:]
            if job_id is not None:
                held = Held(job_id, due_at, token, self.process_id, kind, attempt, most, crashes)
                taken.append(Taken(held, tenant, priority, group, limited or queue_limited))
        if rows:
            self.clock.observe(now)
        if room == -1:
            raise ProcessExpired(f"the lease of process {self.process_id} has ended")
        self._queue_limited = queue_limited
        self._learn(pairs, room)
        return taken

    def _learn(self, pairs: dict[tuple[int, int], tuple[int, int]], room: int) -> None:
        """What to pass over for a while: tenants at their limit, and pairs whose due entries we may not take."""
        now = time.monotonic()
        cut = sum(seen for _, seen in pairs.values()) >= room
        for (tenant, priority), (allowed, seen) in pairs.items():
            if allowed == 0:
                self._full.setdefault(tenant, now + FULL_SECONDS)
            elif not seen and not cut:
                self._passed[tenant, priority] = now + PASS_SECONDS
                self.met_unknown = True


def _shares(pairs: list[Pair], size: int) -> list[tuple[Pair, int]]:
    """Weighted round robin: each tenant its weight, times what fills the batch."""
    total = sum(pair.weight for pair in pairs)
    quantum = max(1, -(-size // total))
    chosen: list[tuple[Pair, int]] = []
    left = size
    for pair in pairs:
        if left <= 0:
            break
        share = min(left, pair.weight * quantum)
        chosen.append((pair, share))
        left -= share
    return chosen
