"""Results of jobs under a limit that the thread which claims may settle together with its next claim."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from dispatch.holdings import Holdings
from dispatch.wakeup import Wakeup
from jobs.leases import may_end_in_relay
from jobs.results import Settlement

Owner = tuple[str, int]
"""A queue, and a tenant's id."""


class Relays:
    """Handed over to it; everything else is the settler's."""

    def __init__(self, holdings: Holdings, wakeup: Wakeup, settle: Callable[[Settlement], None]) -> None:
        self.holdings, self.wakeup = holdings, wakeup
        self._settle = settle
        self._handed: deque[Settlement] = deque()

    def put(self, settlement: Settlement) -> None:
        """From any thread."""
        if may_end_in_relay(settlement):
            holding = self.holdings.of(settlement.held)
            if holding is not None and holding.claim.limited:
                self._handed.append(settlement)
                self.wakeup.set()
                return
        self._settle(settlement)

    def take(self) -> tuple[Owner, list[Settlement]] | None:
        """What was handed over of one tenant in one queue; None when nothing is left."""
        owner, taken = None, list[Settlement]()
        for _ in range(len(self._handed)):
            settlement = self._handed.popleft()
            if (holding := self.holdings.of(settlement.held)) is None:
                self._settle(settlement)  # forgotten meanwhile: the settler finds out whose it is
                continue
            owner = owner or (holding.claim.queue, holding.claim.tenant_id)
            if owner == (holding.claim.queue, holding.claim.tenant_id):
                taken.append(settlement)
            else:
                self._handed.append(settlement)
        return (owner, taken) if owner else None

    def give_back(self, some: Iterable[Settlement]) -> None:
        """These are the settler's after all."""
        for settlement in some:
            self._settle(settlement)

    def give_all_back(self) -> None:
        while self._handed:
            self._settle(self._handed.popleft())
