"""The ledger: shared memory in which handlers note, by job number, when a job ran first and how often. The scheduler
knows nothing of it."""

from __future__ import annotations

import mmap
import time
from pathlib import Path

VARIABLE = "BENCHMARK_LEDGER"
"""The environment variable that hands the file on to the workers."""
_START, _COUNT = 8, 1
MOST = 255


class Ledger:
    def __init__(self, file: Path) -> None:
        with file.open("r+b") as opened:
            self._map = mmap.mmap(opened.fileno(), 0)
        self.size = len(self._map) // (_START + _COUNT)
        self._counts_at = self.size * _START
        self._starts = memoryview(self._map)[: self._counts_at].cast("d")
        self._counts = memoryview(self._map)[self._counts_at :]

    @classmethod
    def create(cls, file: Path, size: int) -> Ledger:
        """Room for jobs 0 to size - 1; what is not used takes no space."""
        with file.open("xb") as opened:
            opened.truncate(size * (_START + _COUNT))
        return cls(file)

    def note(self, number: int) -> None:
        """A run of this job starts now. About a microsecond."""
        if not self._counts[number]:
            self._starts[number] = time.time()
        if self._counts[number] < MOST:
            self._counts[number] += 1

    def start(self, number: int) -> float:
        """When it ran first, by this host's clock; 0 if it never did."""
        return self._starts[number]

    def count(self, number: int) -> int:
        return self._counts[number]

    def left(self, numbers: range) -> int:
        """How many of these have not run yet. Quick enough to be asked all the time."""
        return self._map[self._counts_at + numbers.start : self._counts_at + numbers.stop].count(b"\0")
