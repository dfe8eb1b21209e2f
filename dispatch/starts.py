"""Claims that were made a moment before their time, held until it has come: then a start costs no round trip."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count

from dispatch.holdings import Holding
from jobs.clock import DatabaseClock

AHEAD = timedelta(milliseconds=20)
"""How long before a job's time to wake for it. It may be claimed twice as early, with others: a cancel that comes later
is a request, as for one that runs."""


class Starts:
    """A thread of its own: the one that claims waits for the database when a start is due."""

    def __init__(self, clock: DatabaseClock, start: Callable[[Holding], None]) -> None:
        self.clock = clock
        self._start = start
        self._held: list[tuple[datetime, int, Holding]] = []
        self._number = count()
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="starts", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def put(self, holding: Holding, now: datetime) -> bool:
        """Start it now, or hold it until its time; True when it is held."""
        if holding.claim.run_at <= now:
            self._start(holding)
            return False
        with self._changed:
            heappush(self._held, (holding.claim.run_at, next(self._number), holding))
            if self._held[0][2] is holding:
                self._changed.notify()
        return True

    def finish(self) -> None:
        """Hold nothing any more; what was held has been given back."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while (holding := self._next()) is not None:
            self._start(holding)  # one that was given back meanwhile is passed over by the body's thread

    def _next(self) -> Holding | None:
        """Wait until the time of the first has come."""
        with self._changed:
            while not self._ended:
                if not self._held:
                    self._changed.wait()
                elif (wait := (self._held[0][0] - self.clock.now()).total_seconds()) > 0:
                    self._changed.wait(wait)
                else:
                    return heappop(self._held)[2]
        return None
