"""Looks: how a process learns that something became due in its queues, without ever scanning from the beginning.

Narrow looks reach back a moment. A wide one each second reaches back to before any transaction that was open at the last
proven one: who commits late is seen, however long he took. A sweep probes what claims may have left behind their marks.
A hop over everything runs at a fresh start, again when all that was open then has ended, and once a minute: the net.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import Any

import psycopg

from jobs import arrays
from jobs.clock import DatabaseClock
from jobs.leases.ring import BEGINNING, Mark, Pair, Ring
from jobs.results import Claim
from jobs.sql import load
from jobs.steady import time

Connection = psycopg.Connection[Any]

EVERY = 0.05
"""Seconds between looks while there is work."""
PATIENCE = 0.1
"""How much longer a look may wait for what can be claimed without it."""
BACK = timedelta(seconds=0.5)
"""How far a narrow look reaches back."""
WIDE = 1.0
"""Seconds between wide looks."""
SPARE = timedelta(seconds=1)
"""How much further a wide look reaches back than the proof: a run_at may be older than its transaction's number."""
SWEEP = 2.0
"""Seconds between sweeps."""
HOP = 60.0
"""Seconds between hops."""
SHARE = 20
"""No kind of look takes more than a twentieth of the time."""
CROWD = timedelta(seconds=0.005)
"""So many in so short a time are work for every process."""
REACH = 2
"""A steady flow is claimed in batches: a claim takes what comes within so many times as long as it is made ahead."""
GATHER = 0.75
"""Of that further reach, what is let in: nobody's clock is exact, and what a claim does not reach waits for a look."""
INSTANT = timedelta(microseconds=1)
"""What two times differ by at least."""
COMING = 32
"""How many future entries of a queue a look tells: when to wake, and for whom."""


@dataclass
class Line:
    """What is known of one queue."""

    queue: str
    ring: Ring = field(default_factory=Ring)
    coming: list[tuple[datetime, Pair, int, bool, datetime]] = field(default_factory=list)
    """(when to claim it, pair, weight, limited, run_at): a heap."""
    ahead: timedelta = timedelta()
    """How long before its time an entry may be claimed that need not start at once."""
    more: bool = False
    """There are future entries beyond `coming`, the last of which is due at `last_at`."""
    last_at: datetime = BEGINNING[0]
    told: int = 0
    """How many future entries the last look told, those of unknown types too."""
    unknown: bool = False
    """Something due is of a type unknown here."""
    strangers: bool = False
    """Since the last hop such were seen, or a claim has walked for long: they may lie among what may be claimed, so claims
    go in strides."""
    copied: dict[Pair, Mark] = field(default_factory=dict)
    """Marks of touched pairs as they were when the proof of the next sweep began."""

    def arrive(self, now: datetime) -> bool:
        """Let those whose time has come enter the ring, and with them what the same claim may take; True when there
        were any."""
        if not self.coming or self.coming[0][0] > now:
            return False
        until, held_back = now + GATHER * (REACH - 1) * self.ahead, []
        while self.coming and self.coming[0][0] <= until:
            entry = heappop(self.coming)
            claim_at, pair, weight, limited, run_at = entry
            if now < claim_at == run_at:  # it must start at once
                held_back.append(entry)
            else:
                self.ring.see(pair, weight, limited, run_at)
        for entry in held_back:
            heappush(self.coming, entry)
        return True

    def took(self, claims: Iterable[Claim]) -> None:
        """These need no waking for any more. What must start at once may share their pair and time."""
        gone = {((claim.tenant_id, claim.priority), claim.run_at) for claim in claims}
        self.coming = [e for e in self.coming if (e[1], e[4]) not in gone or e[0] == e[4]]
        heapify(self.coming)

    @property
    def next_at(self) -> datetime | None:
        """When to claim the next one, or to look for what comes after those that were known."""
        if not self.coming and self.more:
            return self.last_at - self.ahead
        return self.coming[0][0] if self.coming else None

    @property
    def due_at(self) -> datetime | None:
        """When it may run."""
        if not self.coming and self.more:
            return self.last_at
        return self.coming[0][4] if self.coming else None

    @property
    def crowd(self) -> bool:
        """So many come at once that there is work for everybody."""
        return self.more and bool(self.coming) and self.last_at - self.coming[0][4] < CROWD


class Looks:
    """Over all queues of a process: one statement for all. Not thread-safe."""

    def __init__(
        self, queues: Sequence[str], types: Sequence[str], *, suspects: bool = False, clock: DatabaseClock
    ) -> None:
        self.lines = {queue: Line(queue) for queue in queues}
        self.types, self.suspects, self.clock = list(types), suspects, clock
        self.number = 0
        """Counts looks: what was learnt at one is proven when `proven` has passed it."""
        self.proven = -1
        self._now: datetime | None = None
        self._xmin = self._next_xid = 0
        self._next = self._wide_at = self._sweep_at = self._hop_at = self._leap_at = float("-inf")
        self._since: datetime | None = None
        self._pending: tuple[int, datetime, int] | None = None
        self._copied_at = 0
        self._started = self._was_wide = False

    def due(self, *, busy: bool) -> bool:
        """Whether to look now. `busy`: something is known that can be claimed first."""
        return time.monotonic() >= self._next + (PATIENCE if busy else 0.0)

    def wide_in(self) -> float:
        """After a narrow look, the seconds until who committed late is looked for: nobody may sleep for longer."""
        return float("inf") if self._was_wide else max(0.0, self._wide_at - time.monotonic())

    def forget(self) -> None:
        """Look before the next claim."""
        self._next = float("-inf")

    def restart(self) -> None:
        """After a lost connection: hop."""
        self._hop_at = self._next = float("-inf")

    def look(self, connection: Connection) -> None:
        begun = self._next = time.monotonic()
        self.number += 1
        if begun >= self._hop_at:
            self._hop(connection, begun)
        else:
            wide = begun >= self._wide_at
            self._narrow_or_wide(connection, wide)
            if wide:
                self._wide_at = begun + max(WIDE, SHARE * (time.monotonic() - begun))
                self._prove()
            if begun >= self._sweep_at:
                self._sweep(connection)
        ended = time.monotonic()
        if self._next == begun:  # else a forget() during this look, from another thread, counts
            self._next = ended + max(EVERY, SHARE * (ended - begun))

    def _hop(self, connection: Connection, begun: float) -> None:
        self._see_all(connection)
        took = time.monotonic() - begun
        self._sweep_at = begun + SWEEP
        self._hop_at = begun + max(HOP, SHARE * took)
        if self._pending is None:
            self._since = self._now
            self._restart_proof()
            self._copied_at = self._next_xid
        self._narrow_or_wide(connection, True)  # what is coming

    def _narrow_or_wide(self, connection: Connection, wide: bool, since: datetime | None = None) -> None:
        for line in self.lines.values():
            line.coming.clear()
            line.told = 0
        self._was_wide = wide
        if since is None:
            assert self._now and self._since  # noqa: S101, PT018  # a hop came first
            since = self._since - SPARE if wide else self._now - BACK
        self._look(connection, list(self.lines), since, COMING)
        for line in self.lines.values():
            line.more = line.told == COMING
            heapify(line.coming)

    def _look(
        self, connection: Connection, queues: list[str], since: datetime, coming: int
    ) -> list[tuple[Any, ...]]:
        values = {"queues": queues, "types": self.types, "suspects": self.suspects}
        return self._see(connection, "look", {**values, "since": since, "coming": coming})

    def leap(self, connection: Connection, line: Line, pairs: Sequence[Pair]) -> None:
        """A stride through these pairs met strangers alone: one look from their marks on, page by page, finds the next
        that we know. When the last one took long the claims go on in strides meanwhile."""
        begun = time.monotonic()
        if begun < self._leap_at:
            return
        before, first = self._now, min(line.ring.marks[pair][0] for pair in pairs)
        rows = self._look(connection, [line.queue], first - INSTANT, 0)
        found = {(row[5], row[6]): row[7] for row in rows}
        for pair in pairs:
            line.ring.leap(pair, found.get(pair), rows[-1][1])
        self._now = before  # this was no look at the other queues
        self._leap_at = begun + SHARE * (time.monotonic() - begun)

    def _prove(self) -> None:
        """Once the oldest transaction that writes was not begun yet at an earlier look, all that wrote then has ended."""
        assert self._pending is not None  # noqa: S101
        next_xid, moment, number = self._pending
        if self._xmin >= next_xid:
            self._since, self.proven = moment, number
            self._restart_proof()

    def _restart_proof(self) -> None:
        assert self._now is not None  # noqa: S101
        self._pending = (self._next_xid, self._now, self.number)

    def _sweep(self, connection: Connection) -> None:
        begun = time.monotonic()
        pairs = [
            (line.queue, *pair, *line.ring.floors.get(pair, BEGINNING))
            for line in self.lines.values()
            for pair in line.ring.touched | line.copied.keys()
        ]
        if not self._started:
            self._see_all(connection)
        elif pairs:
            queues, tenants, priorities, run_ats, job_ids = zip(*pairs, strict=True)
            self._see(
                connection,
                "sweep",
                {
                    "types": self.types,
                    "pair_queues": arrays.texts(queues),
                    "tenants": arrays.int8s(tenants),
                    "priorities": arrays.int8s(priorities),
                    "run_ats": arrays.timestamps(run_ats),
                    "job_ids": arrays.uuids(job_ids),
                },
            )
        if self._xmin >= self._copied_at:  # this sweep saw what those that were open then have left
            self._started = True
            for line in self.lines.values():
                line.copied = line.ring.prove(line.copied)
            self._copied_at = self._next_xid
        self._sweep_at = begun + max(SWEEP, SHARE * (time.monotonic() - begun))

    def _see_all(self, connection: Connection) -> None:
        """Behind heads that we do not know, a look from the beginning finds the first that we do: it reads all that is
        due, once for all pairs and page by page, where each claim would walk in an order of its own."""
        for line in self.lines.values():
            line.strangers = False
        rows = self._see(connection, "hop", {"queues": list(self.lines), "types": self.types})
        if any(unknown and head for *_, head, unknown, _, _ in rows):
            self._narrow_or_wide(connection, True, BEGINNING[0])

    def _see(self, connection: Connection, statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = connection.execute(
            load(statement), values, binary=True, prepare=statement == "look"
        ).fetchall()
        if rows:
            moment, self._now, self._xmin, self._next_xid = rows[-1][:4]
            self.clock.observe(moment)
        for _, now, _, _, queue, tenant, priority, run_at, job_id, flag, weight, limited in rows:
            if run_at is None:
                if flag:
                    self.lines[queue].unknown = self.lines[queue].strangers = True
                continue
            line = self.lines[queue]
            if run_at > now:
                line.told, line.last_at = line.told + 1, run_at
                if tenant is None:
                    continue
                claim_at = run_at if flag or limited else run_at - line.ahead
                line.coming.append((claim_at, (tenant, priority), weight, limited, run_at))
            else:
                line.unknown |= flag
                line.strangers |= flag
                if flag and job_id is not None:
                    continue
                line.ring.see((tenant, priority), weight, limited, run_at, job_id)
        return rows
