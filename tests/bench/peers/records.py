"""Reads what the bodies wrote, and judges it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.bench.peers.adapters.record import RECORD


class Run(NamedTuple):
    number: int
    due: float
    start: float


@dataclass(frozen=True)
class Starts:
    lateness: list[float]
    """Of the first start of each job, in rising order; in seconds."""
    lost: int
    twice: int
    early: int


class Records:
    def __init__(self, file: Path) -> None:
        self.file = file
        file.touch()

    def count(self) -> int:
        """How many there are. Quick enough to be asked all the time."""
        return self.file.stat().st_size // RECORD.size

    def read(self) -> list[Run]:
        return [Run(*values) for values in RECORD.iter_unpack(self.file.read_bytes())]


def judge(runs: Iterable[Run], numbers: range) -> Starts:
    """Those of these jobs."""
    first: dict[int, Run] = {}
    twice = set()
    for run in sorted(runs, key=lambda run: run.start):
        if run.number in numbers and first.setdefault(run.number, run) is not run:
            twice.add(run.number)
    lateness = sorted(run.start - run.due for run in first.values())
    return Starts(lateness, len(numbers) - len(first), len(twice), sum(late < 0 for late in lateness))
