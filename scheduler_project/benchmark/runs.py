"""Runs: from when to when each job ran, noted by the handlers themselves in a file that all append to."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_LINE = struct.Struct("qdd")


class Run(NamedTuple):
    number: int
    begun: float
    """Of this host's monotonic clock, which its processes share."""
    ended: float


class Runs:
    def __init__(self, file: Path) -> None:
        self._descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, number: int, begun: float, ended: float) -> None:
        os.write(self._descriptor, _LINE.pack(number, begun, ended))


def read_runs(file: Path, numbers: range) -> list[Run]:
    """Of these jobs, in the order in which they began."""
    lines = _LINE.iter_unpack(file.read_bytes()) if file.exists() else iter(())
    return sorted((Run(*line) for line in lines if line[0] in numbers), key=lambda run: run.begun)


def most_at_once(some: Iterable[Run]) -> int:
    """How many of these ran at the same time; one that begins at the instant at which another ends is not beside it."""
    most = now = 0
    for _, step in sorted(_edges(some)):
        now += step
        most = max(most, now)
    return most


def busy(some: Iterable[Run], begin: float, end: float) -> float:
    """Seconds that they ran within this time, all together."""
    return sum(max(0.0, min(run.ended, end) - max(run.begun, begin)) for run in some)


def _edges(some: Iterable[Run]) -> Iterator[tuple[float, int]]:
    for run in some:
        yield run.begun, 1
        yield run.ended, -1
