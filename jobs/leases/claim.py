"""Claim: take due entries of a queue, fairly between tenants and within limits, under one new lease token.

One round trip, limits included. All of a claimer's memory may be lost at any time: it only says where to go on and what
to pass over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from datetime import date, timedelta
from itertools import accumulate
from typing import Any, Protocol
from uuid import uuid4

import psycopg

from jobs import arrays
from jobs.clock import DatabaseClock
from jobs.errors import SchedulerError
from jobs.leases.counts import Count, Counts
from jobs.leases.door import Door
from jobs.leases.looks import REACH, Looks
from jobs.leases.passed import Passed
from jobs.leases.reply import Reply, Room, read
from jobs.leases.ring import END, NIL, Mark, Pair, Share
from jobs.partitions import day_of
from jobs.results import Claim
from jobs.session import bounded
from jobs.sql import for_day, load
from jobs.steady import time

Connection = psycopg.Connection[Any]

ROUNDS = 16
"""Most statements of one call of `claim`."""
STRIDE, LEAST = 5000, 100
"""Where unknown types lie among what is due, how many entries a claim reads at most: of all its pairs, and of each."""
WALK = 0.5
"""Seconds after which a claim that brought less than it asked for has walked what it may not take: what is held, say."""
NEVER = float("inf")
"""How long a claim says that who is held has to wait."""
SUSPECT = 2
"""Crashes from which on an entry runs in a process of its own, where it can harm no other. A constant in the statements
and the index too."""


class ProcessExpired(SchedulerError):
    """The lease of this process ended: register anew, under another id."""


class Noise(Protocol):
    """What a process knows of how much each tenant holds of it."""

    def room(self, tenant_id: int, share: float | None, *, rivals: bool) -> int | None:
        """How many more of this tenant's entries may be claimed, when it may hold this share of the threads (None: as in
        the settings) while others wait; None: as many as there are. `rivals`: others wait here."""


class Claimer:
    """One queue's claims by one process. Not thread-safe but for `settled`; uses its connection in autocommit."""

    def __init__(
        self,
        queue: str,
        process_id: int,
        types: Sequence[str],
        *,
        suspects: bool = False,
        clock: DatabaseClock | None = None,
        looks: Looks | None = None,
        ahead: timedelta = timedelta(),
    ) -> None:
        """`suspects`: claim only entries that crashed their process twice, instead of all others. `looks`: shared with
        the claimers of the process's other queues. `ahead`: how long before an entry's time to wake for it; the
        claim then takes what comes within REACH times as long."""
        self.queue, self.process_id, self.types, self.suspects = queue, process_id, list(types), suspects
        self.looks = looks or Looks([queue], types, suspects=suspects, clock=clock or DatabaseClock())
        self.line = self.looks.lines[queue]
        self.ring = self.line.ring
        self.ahead = self.line.ahead = ahead
        self.passed = Passed(self.ring)
        self.counts = Counts()
        self.draining = False
        self.door = Door()
        self._noisy_share: float | None = None
        self._exempt: set[int] = set()
        """Tenants that may hold all threads."""
        self.missing_day: date | None = None
        self._fences: dict[Pair, Mark] = {}
        """Where the stride of the present claim ends, in pairs that go on behind it."""

    def claim(self, connection: Connection, size: int, free: int, noise: Noise | None = None) -> list[Claim]:
        """Up to `size` entries; at most `free` of those that must start at once, and of each tenant no more than `noise`
        allows. What one statement took is returned at once; nothing only after a fresh look found nothing, or while
        somebody is passed over.
        ProcessExpired when our lease has ended."""
        looked = False
        if free > 0:
            self.passed.untie()
        for _ in range(ROUNDS):
            if self.door.shut_for is not None:
                break
            if self.looks.due(busy=self.waiting):
                self.looks.look(connection)
                looked = True
            self._bring_back(connection)
            if chosen := self.ring.choose(size):
                shares = self._hush(self._startable(chosen, free), noise)
                if shares and (claims := self._take(connection, shares, size, max(0, free))):
                    if self.line.coming:
                        self.line.took(claims)
                    return claims
            elif looked or self.passed:  # who is passed over is no reason to look sooner
                break
            else:
                self.looks.forget()
        return []

    def retry_in(self) -> float | None:
        """Seconds until what was at its limit, held or locked is worth another try; None when there is nothing."""
        shut_for = self.door.shut_for
        return self.passed.retry_in() if shut_for is None else shut_for

    @property
    def claimable(self) -> bool:
        """Something is known that may be claimed at once."""
        return len(self.ring) > 0 and self.door.shut_for is None

    @property
    def greedy(self) -> bool:
        """Somebody's entries wait for a thread."""
        return len(self.ring) > 0 or bool(self.passed.tied)

    @property
    def waiting(self) -> bool:
        """Something is known that may be claimed, now or when a limit allows."""
        return len(self.ring) > 0 or bool(self.passed)

    def settled(self, tenant_id: int) -> None:
        """A slot of this tenant has become free by our own doing. From any thread."""
        self.door.settled()
        self.passed.settled(tenant_id)

    def _startable(self, shares: list[Share], free: int) -> list[Share]:
        """Without those under a limit when no thread is free: what takes up a slot must start at once."""
        if free > 0:
            return shares
        for share in shares:
            if share.tenant_id in self.ring.limited:
                self.passed.tie(share.tenant_id)
        return [share for share in shares if share.tenant_id not in self.ring.limited]

    def _hush(self, shares: list[Share], noise: Noise | None) -> list[Share]:
        """Without those that hold their share of our threads, and no more of the others than their share allows."""
        if noise is None:
            return shares
        kept, rivals = [], len(self.ring) > 1
        for share in shares:
            room = None
            if share.tenant_id not in self._exempt:
                room = noise.room(share.tenant_id, self._noisy_share, rivals=rivals)
            if room is None:
                kept.append(share)
            elif room > 0:
                kept.append(share._replace(most=min(share.most, room)))
            else:
                self.passed.hushed(share.tenant_id)
        return kept

    def _bring_back(self, connection: Connection) -> None:
        self.passed.bring_back(lambda tenants: self._ask(connection, tenants))

    def _ask(self, connection: Connection, tenants: Sequence[int]) -> Iterable[tuple[int, float | None]]:
        """How long these tenants have still to wait, by the rules of the claim."""
        values = {
            "queue": self.queue,
            "process_id": self.process_id,
            "size": 1,
            "peek": True,
            "tenants": arrays.int8s(tenants),
            "shares": arrays.int8s([1] * len(tenants)),
            "oldest": arrays.int8s([self.counts.oldest(tenant_id) for tenant_id in tenants]),
            "queue_oldest": 0,
        }
        return connection.execute(load("free"), values, binary=True, prepare=True).fetchall()

    def _take(self, connection: Connection, shares: list[Share], size: int, free: int) -> list[Claim]:
        shares = [
            share._replace(most=min(share.most, free)) if share.tenant_id in self.ring.limited else share
            for share in shares
        ]
        pairs = [pair for share in shares for pair in share.pairs]
        marks = [self.ring.marks[pair] for pair in pairs]
        lasts = list(accumulate(len(share.pairs) for share in shares))
        limited = [share.tenant_id for share in shares if share.tenant_id in self.ring.limited]
        self._fences = self._stride(connection, pairs) if self.line.strangers else {}
        untils = [self._fences.get(pair, END) for pair in pairs]
        token = uuid4()
        values = {
            "queue": self.queue,
            "process_id": self.process_id,
            "types": self.types,
            "suspects": self.suspects,
            "size": size,
            "free": free,
            "ahead": REACH * self.line.ahead,
            "token": token,
            "tenants": arrays.int8s([share.tenant_id for share in shares]),
            "firsts": arrays.int8s(
                [last - len(share.pairs) + 1 for share, last in zip(shares, lasts, strict=True)]
            ),
            "lasts": arrays.int8s(lasts),
            "priorities": arrays.int8s([priority for _, priority in pairs]),
            "run_ats": arrays.timestamps([run_at for run_at, _ in marks]),
            "job_ids": arrays.uuids([job_id for _, job_id in marks]),
            "until_ats": arrays.timestamps([run_at for run_at, _ in untils]),
            "until_ids": arrays.uuids([job_id for _, job_id in untils]),
            "shares": arrays.int8s([share.most for share in shares]),
            "oldest": arrays.int8s([self.counts.oldest(share.tenant_id) for share in shares]),
            "queue_limited": self.counts.queue is not None,
            "queue_oldest": self.counts.queue.oldest if self.counts.queue else 0,
            "peek": False,
        }
        today = day_of(self.looks.clock.now())
        self.door.ask()
        begun = time.monotonic()
        try:
            rows = self._send(connection, None if today == self.missing_day else today, values, limited)
        except psycopg.errors.UndefinedTable:  # nobody has made today's leaves; what waits is older
            self.missing_day = today
            return []
        reply = read(rows, self.queue, self.process_id, token)
        claims = self._learn_all(reply, shares, size, free, set(limited))
        self.line.strangers |= len(claims) < size and time.monotonic() - begun > WALK
        barren = [pair for pair, fence in self._fences.items() if self.ring.marks[pair] == fence]
        if barren and not claims:
            self.looks.leap(connection, self.line, barren)
        return claims

    def _stride(self, connection: Connection, pairs: list[Pair]) -> dict[Pair, Mark]:
        marks = [self.ring.marks[pair] for pair in pairs]
        values = {
            "queue": self.queue,
            "tenants": arrays.int8s([tenant_id for tenant_id, _ in pairs]),
            "priorities": arrays.int8s([priority for _, priority in pairs]),
            "run_ats": arrays.timestamps([run_at for run_at, _ in marks]),
            "job_ids": arrays.uuids([job_id for _, job_id in marks]),
            "stride": max(LEAST, STRIDE // len(pairs)),
        }
        rows = connection.execute(load("fence"), values, binary=True).fetchall()
        return {pair: fence for pair, fence in zip(pairs, rows, strict=True) if fence[0] is not None}

    def _send(
        self, connection: Connection, day: date | None, values: dict[str, Any], limited: list[int]
    ) -> list[tuple[Any, ...]]:
        queue = self.counts.queue is not None or self.draining
        locks = bool(limited) or queue
        statement = for_day("claim", day, not locks)
        with (
            connection.pipeline() if locks else nullcontext(),  # one transaction as well: it ends at the sync
            bounded(connection) if locks else nullcontext(),
        ):
            if queue:  # before its tenants
                connection.execute(load("lock_queue"), values, prepare=True)
            if limited:
                connection.execute(
                    load("lock_tenants"), {**values, "limited": arrays.int8s(limited)}, prepare=True
                )
            cursor = connection.execute(statement, values, binary=True, prepare=True)
        return cursor.fetchall()

    def _learn_all(
        self, reply: Reply, shares: list[Share], size: int, free: int, asked: set[int]
    ) -> list[Claim]:
        """Move on by what a claim has told; returns what it has taken."""
        room = reply.room
        self.looks.clock.observe(room.moment)
        if room.size == -1:
            raise ProcessExpired(f"the lease of process {self.process_id} has ended")
        self._learn_queue(room)
        for pair, mark in reply.marks.items():
            self.ring.advance(pair, min(mark, (room.now, NIL)))  # what comes now must not lie behind it
        for share in shares:
            self._learn(share, reply, asked, cut=room.size < size)
        if reply.stuck and (reply.claims or not free):  # else they were changed meanwhile: once more
            self._tie(shares, reply.stuck, {claim.tenant_id for claim in reply.claims})
        return reply.claims

    def _learn_queue(self, room: Room) -> None:
        known = self.draining or not room.draining
        self._noisy_share, self.draining = room.noisy_share, room.draining
        self.line.ahead = timedelta() if room.limited or room.draining else self.ahead
        if not room.limited:
            self.counts.queue = None
        elif self.counts.queue is None:
            self.counts.queue, known = Count(self.looks.number), False
        else:
            self.counts.queue.told(room.oldest, self.looks.proven)
        if room.size == 0 and room.wait:
            self.door.close(room.wait)
        elif room.size > 0:
            self.door.open()
        elif known:  # else it was not locked yet: once more
            self.door.full()

    def _learn(self, share: Share, reply: Reply, asked: set[int], *, cut: bool) -> None:
        """Which pairs ran dry, and whether this tenant is passed over for a while."""
        tenant_id, allowed, held, limited, weight, oldest, _, wait, exempt = reply.told[share.tenant_id]
        stuck, gave = reply.stuck, [pair for pair in share.pairs if pair in reply.marks]
        self.ring.learn(tenant_id, weight or 1, limited)
        (self._exempt.add if exempt else self._exempt.discard)(tenant_id)
        if not limited:
            self.counts.of.pop(tenant_id, None)
        else:
            count = self.counts.of.setdefault(tenant_id, Count(self.looks.number))
            count.told(oldest, self.looks.proven)
        if limited and not held and wait != NEVER:
            if tenant_id in asked:
                self.passed.locked(tenant_id)
        elif reply.seen[tenant_id] < allowed:
            self._ran_dry(share.pairs if not cut else [], stuck)
        else:
            self._ran_dry(share.pairs[: share.pairs.index(gave[-1])] if gave else [], stuck)
            if allowed < share.most:
                self.passed.at_limit(tenant_id, wait)

    def _ran_dry(self, pairs: Sequence[Pair], stuck: set[Pair]) -> None:
        """What was picked and not taken is still there."""
        for pair in pairs:
            if pair not in stuck:
                if pair in self._fences:  # what is behind it comes with the next stride
                    self.ring.advance(pair, self._fences[pair])
                else:
                    self.ring.exhausted(pair)

    def _tie(self, shares: list[Share], stuck: set[Pair], served: set[int]) -> None:
        """Pass over, until a thread is free, whose entries must start at once and could not."""
        for share in shares:
            if share.tenant_id not in served and stuck.intersection(share.pairs):
                self.passed.tie(share.tenant_id)
