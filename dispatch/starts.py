"""Claims that were made a moment before their time, held until it has come: then a start costs no round trip."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count

from dispatch.holdings import Holding
from jobs.clock import DatabaseClock

AHEAD = timedelta(milliseconds=20)
"""How long before its time a job may be claimed. A cancel that comes later is a request, as for one that runs."""


class Starts:
    """Used by the thread that claims alone."""

    def __init__(self, clock: DatabaseClock, start: Callable[[Holding], None]) -> None:
        self.clock = clock
        self._start = start
        self._held: list[tuple[datetime, int, Holding]] = []
        self._number = count()

    def put(self, holding: Holding) -> bool:
        """Start it now, or hold it until its time; True when it is held."""
        if holding.claim.run_at <= self.clock.now():
            self._start(holding)
            return False
        heappush(self._held, (holding.claim.run_at, next(self._number), holding))
        return True

    def release(self) -> float | None:
        """Start those whose time has come; returns the seconds until the next one, None when none is held. What was
        given back meanwhile is passed over by the thread that gets it."""
        while self._held:
            wait = (self._held[0][0] - self.clock.now()).total_seconds()
            if wait > 0:
                return wait
            self._start(heappop(self._held)[2])
        return None
