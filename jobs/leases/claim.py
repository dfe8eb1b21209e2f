"""Claim: take due entries of a queue, fairly between tenants and within limits, under one new lease token.

One round trip, limits included. All of a claimer's memory may be lost at any time: it only says where to go on and what
to pass over.
"""

from __future__ import annotations

import random
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import date, timedelta
from itertools import accumulate
from typing import Any
from uuid import UUID, uuid4

import psycopg

from jobs import arrays
from jobs.clock import DatabaseClock
from jobs.errors import SchedulerError
from jobs.leases.looks import REACH, Looks
from jobs.leases.ring import NIL, Mark, Pair, Share, just_before
from jobs.partitions import day_of
from jobs.results import Claim, Held
from jobs.sql import for_day, load

Connection = psycopg.Connection[Any]

ROUNDS = 16
"""Most statements of one call of `claim`."""
FREE_SECONDS = 0.02
"""Seconds between two questions for tenants that were at their limit; an own settle brings one back at once."""
BUSY_SECONDS = (0.005, 0.02)
"""How long a tenant or queue that another claimer has locked is passed over."""
BUSY_SHARE, IDLE_SHARE = 20, 4
"""The question takes at most a twentieth of the time, a quarter when there is nothing else to do."""

SUSPECT = 2
"""Crashes from which on an entry runs in a process of its own, where it can harm no other. A constant in the statements
and the index too."""


class ProcessExpired(SchedulerError):
    """The lease of this process ended: register anew, under another id."""


class Count:
    """From which claim on to count what runs under one limit: the oldest lease seen alive."""

    __slots__ = ("learnt", "oldest")

    def __init__(self, look: int) -> None:
        self.learnt, self.oldest = look, 0

    def told(self, oldest: int, proven: int) -> None:
        """Who has only just become limited may have unlocked claims in flight: from the start until those have ended."""
        self.oldest = oldest if self.learnt < proven else 0


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
        self._counts: dict[int, Count] = {}
        self._full: set[int] = set()
        self._busy: dict[int, float] = {}
        self._asked, self._asking = 0.0, 0.0
        self._freed: deque[int] = deque()
        self._queue_count: Count | None = None
        self._queue_full = False
        self._missing_day: date | None = None
        self._tied: set[int] = set()
        """Tenants whose entries must start at once, passed over until a thread is free."""

    def claim(self, connection: Connection, size: int, free: int) -> list[Claim]:
        """Up to `size` entries; at most `free` of those that must start at once. What one statement took is returned at
        once; nothing only after a fresh look found nothing allowed. ProcessExpired when our lease has ended."""
        looked = self._queue_full = False
        if free > 0 and self._tied:
            for tenant_id in self._tied:
                self.ring.bring_back(tenant_id)
            self._tied.clear()
        for _ in range(ROUNDS):
            if self.looks.due(busy=len(self.ring) > 0):
                self.looks.look(connection)
                looked = True
            self._bring_back(connection)
            if shares := self.ring.choose(size):
                if claims := self._take(connection, shares, size, max(0, free)):
                    if self.line.coming:
                        self.line.took(claims)
                    return claims
                if self._queue_full:
                    break
            elif looked:
                break
            else:
                self.looks.forget()
        return []

    def retry_in(self) -> float | None:
        """Seconds until what was at its limit or locked is worth another try; None when there is nothing."""
        if self._queue_full or self._full:
            return FREE_SECONDS
        return max(0.0, min(self._busy.values()) - time.monotonic()) if self._busy else None

    @property
    def claimable(self) -> bool:
        """Something is known that may be claimed at once."""
        return len(self.ring) > 0 and not self._queue_full

    @property
    def waiting(self) -> bool:
        """Something is known that may be claimed, now or when a limit allows."""
        return bool(len(self.ring) or self._full or self._busy or self._freed or self._tied)

    def settled(self, tenant_id: int) -> None:
        """A slot of this tenant has become free by our own doing. From any thread."""
        if self._full or self._queue_full:
            self._freed.append(tenant_id)

    def _bring_back(self, connection: Connection) -> None:
        now = time.monotonic()
        while self._freed:
            self._return(self._freed.popleft())
        for tenant_id in [tenant for tenant, until in self._busy.items() if until <= now]:
            del self._busy[tenant_id]
            self.ring.bring_back(tenant_id)
        share = BUSY_SHARE if len(self.ring) else IDLE_SHARE
        if not self._full or now < self._asked + max(FREE_SECONDS, share * self._asking):
            return
        tenants = list(self._full)
        oldest = [count.oldest if (count := self._counts.get(tenant)) else 0 for tenant in tenants]
        rows = connection.execute(
            load("free"), {"tenants": arrays.int8s(tenants), "oldest": arrays.int8s(oldest)}, binary=True
        ).fetchall()
        for (tenant_id,) in rows:
            self._return(tenant_id)
        self._asked = time.monotonic()
        self._asking = self._asked - now

    def _return(self, tenant_id: int) -> None:
        self._full.discard(tenant_id)
        self.ring.bring_back(tenant_id)

    def _take(self, connection: Connection, shares: list[Share], size: int, free: int) -> list[Claim]:
        shares = [
            share._replace(most=min(share.most, max(1, free)))
            if share.tenant_id in self.ring.limited
            else share
            for share in shares
        ]
        pairs = [pair for share in shares for pair in share.pairs]
        marks = [self.ring.marks[pair] for pair in pairs]
        lasts = list(accumulate(len(share.pairs) for share in shares))
        counts = [self._counts.get(share.tenant_id) for share in shares]
        limited = [share.tenant_id for share in shares if share.tenant_id in self.ring.limited]
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
            "shares": arrays.int8s([share.most for share in shares]),
            "oldest": arrays.int8s([count.oldest if count else 0 for count in counts]),
            "queue_limited": self._queue_count is not None,
            "queue_oldest": self._queue_count.oldest if self._queue_count else 0,
        }
        today = day_of(self.looks.clock.now())
        try:
            rows = self._send(connection, None if today == self._missing_day else today, values, limited)
        except psycopg.errors.UndefinedTable:  # nobody has made today's leaves; what waits is older
            self._missing_day = today
            return []
        return self._read(rows, shares, size, free, set(limited), token)

    def _send(
        self, connection: Connection, day: date | None, values: dict[str, Any], limited: list[int]
    ) -> list[tuple[Any, ...]]:
        statement = for_day("claim", day)
        locks = limited or self._queue_count is not None
        with (
            connection.pipeline() if locks else nullcontext(),
            connection.transaction() if locks else nullcontext(),
        ):
            if self._queue_count is not None:  # the queue before its tenants
                connection.execute(load("lock_queue"), values)
            if limited:
                connection.execute(load("lock_tenants"), {**values, "limited": arrays.int8s(limited)})
            cursor = connection.execute(statement, values, binary=True, prepare=True)
        return cursor.fetchall()

    def _read(
        self,
        rows: list[tuple[Any, ...]],
        shares: list[Share],
        size: int,
        free: int,
        asked: set[int],
        token: UUID,
    ) -> list[Claim]:
        """The claims, and what the rows tell of each tenant, at least one row each."""
        room, queue_limited, queue_oldest, moment, now = rows[0][7:12]
        self.looks.clock.observe(moment)
        if room == -1:
            raise ProcessExpired(f"the lease of process {self.process_id} has ended")
        self._learn_queue(queue_limited, queue_oldest, full=room == 0)
        claims: list[Claim] = []
        told = {row[0]: row for row in rows}
        seen: Counter[int] = Counter()
        marks: dict[Pair, Mark] = {}
        stuck: set[Pair] = set()
        process_id, queue, clean = self.process_id, self.queue, True
        for (
            tenant_id,
            _,
            _,
            limited,
            _,
            _,
            slug,
            _,
            _,
            _,
            _,
            _,
            priority,
            run_at,
            job_id,
            taken,
            *rest,
        ) in rows:
            if job_id is None:
                continue
            seen[tenant_id] += 1
            pair = (tenant_id, priority)
            if clean or pair not in stuck:
                marks[pair] = (run_at, job_id) if taken else just_before(run_at, job_id)
            if taken:
                kind, attempt, most, crashes, group, payload = rest
                held = Held(job_id, token, process_id, kind, attempt, most, crashes)
                limited |= queue_limited
                claims.append(
                    Claim(
                        held,
                        tenant_id,
                        slug or str(tenant_id),
                        queue,
                        priority,
                        run_at,
                        group,
                        limited,
                        payload,
                    )
                )
            else:
                clean = False
                stuck.add(pair)
        for pair, mark in marks.items():
            self.ring.advance(pair, min(mark, (now, NIL)))  # what comes now must not lie behind it
        for share in shares:
            pairs = [pair for pair in share.pairs if pair in marks]
            row = told[share.tenant_id]
            self._learn(share, row, asked, seen[share.tenant_id], pairs, stuck, cut=room < size)
        if stuck and (claims or not free):  # else they were changed meanwhile: once more
            self._tie(shares, stuck, {claim.tenant_id for claim in claims})
        return claims

    def _learn_queue(self, limited: bool, oldest: int, *, full: bool) -> None:
        self.line.ahead = timedelta() if limited else self.ahead
        if not limited:
            self._queue_count = None
        elif self._queue_count is None:
            self._queue_count = Count(self.looks.number)  # not locked yet: once more
        else:
            self._queue_full = full
            self._queue_count.told(0 if full else oldest, self.looks.proven)

    def _learn(
        self,
        share: Share,
        row: tuple[Any, ...],
        asked: set[int],
        seen: int,
        gave: list[Pair],
        stuck: set[Pair],
        *,
        cut: bool,
    ) -> None:
        """Which pairs ran dry, and whether this tenant is passed over for a while. `gave`: its pairs with entries."""
        tenant_id, allowed, held, limited, weight, oldest = row[:6]
        self.ring.learn(tenant_id, weight or 1, limited)
        if not limited:
            self._counts.pop(tenant_id, None)
        else:
            count = self._counts.setdefault(tenant_id, Count(self.looks.number))
            if held:
                count.told(oldest, self.looks.proven)
        if limited and not held:
            if tenant_id in asked:
                self._busy[tenant_id] = time.monotonic() + random.uniform(*BUSY_SECONDS)  # noqa: S311
                self.ring.pass_over(tenant_id)
        elif seen < allowed:
            self._ran_dry(share.pairs if not cut else [], stuck)
        else:
            self._ran_dry(share.pairs[: share.pairs.index(gave[-1])] if gave else [], stuck)
            if allowed < share.most:
                self._full.add(tenant_id)
                self.ring.pass_over(tenant_id)

    def _ran_dry(self, pairs: Sequence[Pair], stuck: set[Pair]) -> None:
        """What was picked and not taken is still there."""
        for pair in pairs:
            if pair not in stuck:
                self.ring.exhausted(pair)

    def _tie(self, shares: list[Share], stuck: set[Pair], served: set[int]) -> None:
        """Pass over, until a thread is free, whose entries must start at once and could not."""
        for share in shares:
            if share.tenant_id not in served and stuck.intersection(share.pairs):
                self._tied.add(share.tenant_id)
                self.ring.pass_over(share.tenant_id)
