"""Who was alive until when: a run that was cut off counts no longer than its process lived, whoever killed it."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from jobs.clock import boottime
from tests.commands import is_alive
from tests.storm.fleet import Fleet

LOOK = 0.05
"""Seconds between two looks."""


class Census:
    def __init__(self, fleet: Fleet, last_seen: dict[int, float]) -> None:
        self._fleet, self._last_seen = fleet, last_seen
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="census", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """RuntimeError when it had stopped looking by itself: the ends of runs that were cut off are not known then."""
        failed = not self._thread.is_alive()
        self._ended.set()
        self._thread.join()
        if failed:
            raise RuntimeError("the census has died: see its traceback above")

    def _run(self) -> None:
        while not self._ended.wait(LOOK):
            for pid in self._pids():
                at = boottime()
                if is_alive(pid):
                    self._last_seen[pid] = at

    def _pids(self) -> Iterable[int]:
        return {pid for member in self._fleet.of("worker") for pid in member.pids}
