"""Results that could not be written for what is wrong with them or with their day: kept for as long as it takes, tried
again by themselves, ever more seldom. Of the settler's thread alone."""

from __future__ import annotations

from uuid import UUID

from jobs.results import Settlement
from jobs.steady import time

WAIT = (1.0, 30.0)
"""Seconds until the first further try, and between two at the most."""


class Late:
    def __init__(self) -> None:
        self._results: list[Settlement] = []
        self._known: set[UUID] = set()
        self._wait = WAIT[0]
        self._at = 0.0

    def __len__(self) -> int:
        return len(self._results)

    def add(self, settlement: Settlement) -> bool:
        """True for one that was not late before: worth a line in the log."""
        if not self._results:
            self._at = time.monotonic() + self._wait
        self._results.append(settlement)
        new = settlement.held.job_id not in self._known
        self._known.add(settlement.held.job_id)
        return new

    @property
    def due_in(self) -> float | None:
        """Seconds until the next try; None when nothing is late."""
        return max(0.0, self._at - time.monotonic()) if self._results else None

    def take(self) -> list[Settlement]:
        """Those to try now; who fails again is added again."""
        taken, self._results = self._results, []
        self._wait = min(WAIT[1], self._wait * 2)
        return taken

    def tried(self) -> None:
        """Those that were taken have been tried."""
        self._known = {each.held.job_id for each in self._results}
        if not self._results:
            self._wait = WAIT[0]
