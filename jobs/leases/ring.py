"""Ring: which tenants of one queue may have something due, from where on to look for it, and whose turn it is.

All of it is memory of one claimer and may be lost at any time: it says where to go on, never what is allowed. A pair is
(tenant, priority); its mark is the last entry that was taken or passed, so that no probe walks dead entries twice.
"""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

Pair = tuple[int, int]
Mark = tuple[datetime, UUID]
"""(run_at, job_id): a burst shares one run_at."""

NIL = UUID(int=0)
ANYWHERE = -1
"""Where a claimer begins its first round: numbers of tenants are no place in it, as they have gaps."""
BEGINNING: Mark = (datetime(1970, 1, 1, tzinfo=UTC), NIL)
END: Mark = (datetime.max.replace(tzinfo=UTC), UUID(int=(1 << 128) - 1))


class Share(NamedTuple):
    """How many of one tenant's entries a claim may take, from which of its pairs: the highest priority first."""

    tenant_id: int
    most: int
    pairs: list[Pair]


def just_before(run_at: datetime, job_id: UUID | None) -> Mark:
    """The mark from which on this entry is the first."""
    return run_at, NIL if job_id is None or not job_id.int else UUID(int=job_id.int - 1)


class Ring:
    def __init__(self) -> None:
        self.marks: dict[Pair, Mark] = {}
        self.floors: dict[Pair, Mark] = {}
        """Marks that are proven: every transaction that was open when they were set has ended, so that nothing can
        appear behind them."""
        self.touched: set[Pair] = set()
        """Probed since the last proven sweep: what a probe skipped as locked may have been left behind its mark."""
        self.limited: set[int] = set()
        self._ready: dict[int, set[int]] = {}
        self._weights: dict[int, int] = {}
        self._turns: list[int] = []
        self._away: set[int] = set()
        self._total = 0
        self._cursor = ANYWHERE
        self._owed = 0

    def __len__(self) -> int:
        return len(self._turns)

    def __contains__(self, tenant_id: int) -> bool:
        at = bisect_left(self._turns, tenant_id)
        return at < len(self._turns) and self._turns[at] == tenant_id

    def see(
        self, pair: Pair, weight: int, limited: bool, run_at: datetime, job_id: UUID | None = None
    ) -> None:
        """This pair has, or will have, an entry at `run_at`. One that lies behind the mark takes the mark back. A look
        names no entry (`job_id` None): there, only an earlier instant is behind."""
        before, mark = just_before(run_at, job_id), self.marks.get(pair)
        if mark is None or (before < mark if job_id is not None else run_at < mark[0]):
            self.marks[pair] = before
            self.floors[pair] = min(before, self.floors.get(pair, before))
        tenant_id, priority = pair
        self._ready.setdefault(tenant_id, set()).add(priority)
        self.learn(
            tenant_id, weight, limited or tenant_id in self.limited
        )  # only a claim knows that nothing limits it
        self._enter(tenant_id)

    def learn(self, tenant_id: int, weight: int, limited: bool) -> None:
        if tenant_id in self:
            self._total += weight - self._weights[tenant_id]
        self._weights[tenant_id] = weight
        (self.limited.add if limited else self.limited.discard)(tenant_id)

    def advance(self, pair: Pair, mark: Mark) -> None:
        self.marks[pair] = max(mark, self.marks[pair])

    def leap(self, pair: Pair, run_at: datetime | None, now: datetime) -> None:
        """At `now` it had nothing between its mark and `run_at`; None: nothing from its mark on."""
        self.advance(pair, just_before(run_at or now, None))
        if run_at is None:
            self.exhausted(pair)

    def exhausted(self, pair: Pair) -> None:
        """Nothing due is left from its mark on: a look brings it back."""
        tenant_id, priority = pair
        priorities = self._ready.get(tenant_id, set())
        priorities.discard(priority)
        if not priorities:
            self._ready.pop(tenant_id, None)
            self._leave(tenant_id)

    def pass_over(self, tenant_id: int) -> None:
        """Until `bring_back`: at its limit, or locked by another claimer."""
        self._leave(tenant_id)
        self._away.add(tenant_id)

    def bring_back(self, tenant_id: int) -> None:
        self._away.discard(tenant_id)
        self._enter(tenant_id)

    def prove(self, copied: dict[Pair, Mark]) -> dict[Pair, Mark]:
        """All that was open when these marks were copied has ended, and what it left was seen: they are floors now. What
        no claim needs any more is forgotten. Returns the marks for the next proof."""
        for pair, mark in copied.items():
            if pair in self.touched or pair[1] in self._ready.get(pair[0], ()):
                self.floors[pair] = min(mark, self.marks[pair])
            else:
                del self.marks[pair], self.floors[pair]
                if pair[0] not in self._ready and pair[0] not in self._away:
                    self._weights.pop(pair[0], None)
                    self.limited.discard(pair[0])
        copied = {pair: self.marks[pair] for pair in self.touched}
        self.touched = set()
        return copied

    def choose(self, size: int) -> list[Share]:
        """Weighted round robin from the cursor: each tenant its weight, times what fills the batch. Who is cut off goes
        first next time, for the rest, and once more when that leaves room."""
        shares: list[Share] = []
        quantum, left = -(-size // max(1, self._total)), size
        if self._cursor == ANYWHERE and self._turns:
            self._cursor = random.choice(self._turns)  # noqa: S311  # claimers do not walk in step
        start = bisect_left(self._turns, self._cursor)
        for step in range(len(self._turns) + 1 if self._turns else 0):
            tenant_id = self._turns[(start + step) % len(self._turns)]
            owed = self._owed if tenant_id == self._cursor else 0
            wanted = owed or self._weights[tenant_id] * quantum
            count = min(left, wanted)
            left -= count
            self._cursor, self._owed = (tenant_id, wanted - count) if count < wanted else (tenant_id + 1, 0)
            if step == len(self._turns):
                shares[0] = shares[0]._replace(most=shares[0].most + count)
                break
            pairs = self.pairs_of(tenant_id)
            shares.append(Share(tenant_id, count, pairs))
            self.touched.update(pairs)
            if not left:
                break
        return shares

    def pairs_of(self, tenant_id: int) -> list[Pair]:
        """Where this tenant may have something due, passed over or not: the highest priority first."""
        return [(tenant_id, priority) for priority in sorted(self._ready.get(tenant_id, ()), reverse=True)]

    def _enter(self, tenant_id: int) -> None:
        if self._ready.get(tenant_id) and tenant_id not in self._away and tenant_id not in self:
            insort(self._turns, tenant_id)
            self._total += self._weights[tenant_id]

    def _leave(self, tenant_id: int) -> None:
        if tenant_id in self:
            del self._turns[bisect_left(self._turns, tenant_id)]
            self._total -= self._weights[tenant_id]
