"""Noise: one tenant's slow jobs must not hold all threads of a worker while others wait.

Turns are fair in starts, not in time: a tenant whose jobs take long would hold every thread soon. While others wait, or
were served a moment ago, a tenant holds no more than a share of the threads, and of quick jobs what that share gets
through in a moment. Alone it may have everything. All of it is memory of this process: it costs the database nothing.
"""

from __future__ import annotations

from collections import Counter

from dispatch.holdings import Holdings
from dispatch.pace import Pace
from jobs.clock import boottime
from jobs.conf import conf
from jobs.results import Claim

RECENT = 10.0
"""Seconds for which a tenant that was served counts as one of the others."""
QUICK = 0.05
"""Seconds: a thread that runs so short a body is soon free, whoever's it is."""
MOMENT = 0.25
"""Seconds of quick work on its share of the threads that a tenant may have waiting, behind what the others have."""


class Noise:
    def __init__(self, threads: int, holdings: Holdings, pace: Pace) -> None:
        self.threads, self.holdings, self.pace = threads, holdings, pace
        self._last: dict[int, float] = {}
        """The two tenants that were served last, and when: of any tenant these tell whether another one was."""
        self._held: Counter[int] = Counter()
        self._total = 0
        self._counted = False
        self._now = 0.0
        self._share = 1
        """What one tenant may hold of the threads by the settings."""

    def begin(self) -> None:
        """Of the claim that comes now."""
        self._counted, self._now, self._share = False, boottime(), self._base(conf().noisy_share)

    def room(self, tenant_id: int, share: float | None, *, rivals: bool) -> int | None:
        """How many more of this tenant's entries may be claimed; None: as many as there are."""
        share = conf().noisy_share if share is None else share
        if share >= 1 or not (rivals or self._others(tenant_id)):
            return None
        base = self._base(share)
        pace = self.pace.of_tenant(tenant_id)
        most = base + (int(base * MOMENT / pace) if pace < QUICK else 0)
        room = most - self._of(tenant_id)
        return room if 2 * room > most - base else 0  # what waits is filled up when half of it is gone

    def served(self, claim: Claim) -> bool:
        """Note one that was claimed; True when its tenant has its share already and most of all that is held: it is to
        run after the others'. Among many of a kind everybody's come in the order of their claims."""
        tenant_id = claim.tenant_id
        if tenant_id not in self._last and len(self._last) == 2:
            del self._last[min(self._last, key=self._last.__getitem__)]
        self._last[tenant_id] = self._now
        held = self._of(tenant_id)
        self._held[tenant_id] = held + 1
        self._total += 1
        return held >= self._share and 2 * held > self._total

    def _others(self, tenant_id: int) -> bool:
        return any(other != tenant_id and self._now - at < RECENT for other, at in self._last.items())

    def _base(self, share: float) -> int:
        return max(1, int(self.threads * share))

    def _of(self, tenant_id: int) -> int:
        if not self._counted:
            self._held = Counter(holding.claim.tenant_id for holding in self.holdings.all())
            self._total = self._held.total()
            self._counted = True
        return self._held[tenant_id]
