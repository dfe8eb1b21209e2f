"""The weather: one fault after another, drawn from the seed; each kind comes before any comes again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from random import Random

from jobs.clock import boottime
from tests.storm.cluster import Cluster
from tests.storm.faults import FAULTS, Fault
from tests.storm.notes import Notes, Strike

GAP = (0.5, 2.0)
"""Seconds between two strikes."""
STALL = 0.7
"""Seconds by which a tick of our own may be late; more is a stall of the machine, which is a fault like any."""


class Weather:
    def __init__(self, seed: int, cluster: Cluster, notes: Notes, *, apart: float = 0.0) -> None:
        """`apart`: seconds more between two strikes."""
        self.cluster, self.notes, self.apart = cluster, notes, apart
        self._chance = Random(f"{seed} weather")
        self._ended = threading.Event()
        threading.Thread(target=self._watch_machine, name="machine", daemon=True).start()

    def blow(self, seconds: float) -> Iterator[Strike]:
        """Strike after strike for so long; at least until each kind has come once when `seconds` allow it."""
        until = boottime() + seconds
        for fault in self._faults():
            if boottime() > until:
                return
            strike = self.strike(fault)
            yield strike
            self.cluster.wait(self._chance.uniform(*GAP) + self.apart)

    def strike(self, fault: Fault) -> Strike:
        began = boottime()
        pids = fault.strike(self.cluster, self._chance)
        strike = Strike(fault.name, began, boottime(), pids, fault.at_once)
        self.notes.strikes.append(strike)
        return strike

    def end(self) -> None:
        self._ended.set()

    def _faults(self) -> Iterator[Fault]:
        while True:
            faults = list(FAULTS)
            self._chance.shuffle(faults)
            yield from faults

    def _watch_machine(self) -> None:
        last = time.monotonic()
        while not self._ended.wait(0.1):
            now = time.monotonic()
            if now - last > STALL:
                late = now - last
                self.notes.strikes.append(Strike("machine stalled", boottime() - late, boottime(), None))
            last = now
