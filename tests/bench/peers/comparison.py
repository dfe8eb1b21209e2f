"""The arithmetic: medians of the rounds, ours against theirs, and what these ratios should be."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler_project.benchmark.report import Reach, at_least, at_most
from scheduler_project.benchmark.timing import ratio
from tests.bench.peers.catalogue import OURS, PEERS

BEST = "best on PostgreSQL"
RATIOS = {
    "burst": ("jobs_per_second",),
    "schedule": ("bulk_per_second", "single_p50_ms"),
    "precision": ("lateness_p50_ms", "lateness_p99_ms"),
}
"""The figures of each workload that are compared."""


@dataclass(frozen=True)
class Aim:
    workload: str
    figure: str
    against: str
    """A peer, or the one of them on PostgreSQL that has the least."""
    reach: Reach

    def as_json(self) -> dict[str, Any]:
        return {
            "workload": self.workload,
            "figure": self.figure,
            "against": self.against,
            "ratio": self.reach.ratio and round(self.reach.ratio, 4),
            "reach": str(self.reach),
            "met": self.reach.met,
        }


@dataclass
class Comparison:
    samples: dict[tuple[str, str], list[Mapping[str, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """The figures of each run, by workload and peer."""

    def add(self, workload: str, peer: str, figures: Mapping[str, float]) -> None:
        self.samples[workload, peer].append(figures)

    def medians(self, workload: str, peer: str) -> dict[str, float]:
        """Of each figure; of what must not happen, the most. Empty when no run of it succeeded."""
        runs = self.samples.get((workload, peer), [])
        if not runs:
            return {}
        return {
            name: (max if name in ("early", "twice") else statistics.median)([run[name] for run in runs])
            for name in runs[0]
        }

    def spread(self, workload: str, peer: str, figure: str) -> tuple[float, float] | None:
        """Least and most of the rounds; None when there was one at most."""
        values = [run[figure] for run in self.samples.get((workload, peer), [])]
        return (min(values), max(values)) if len(values) > 1 else None

    def ratio(self, workload: str, peer: str, figure: str) -> float | None:
        """Ours to theirs."""
        ours, theirs = (self.medians(workload, name).get(figure) for name in (OURS, peer))
        return ratio(ours, theirs)

    def best(self, workload: str, figure: str) -> str | None:
        """The peer on PostgreSQL that has the least of it."""
        found = {
            name: value
            for name, peer in PEERS.items()
            if name != OURS and not peer.on_redis
            if (value := self.medians(workload, name).get(figure)) is not None
        }
        return min(found, key=found.__getitem__, default=None)

    def aims(self, workloads: Collection[str]) -> list[Aim]:
        """Of these workloads."""
        found = []
        for workload, figure, against, bound in _AIMS:
            if workload not in workloads:
                continue
            peer = self.best(workload, figure) if against == BEST else against
            made = self.ratio(workload, peer, figure) if peer else None
            reach = at_most(bound, made) if figure.startswith("lateness") else at_least(bound, made)
            found.append(Aim(workload, figure, against, reach))
        return found


_AIMS = [
    ("burst", "jobs_per_second", "graphile", 1.1),
    ("burst", "jobs_per_second", "pgqueuer", 3.0),
    ("burst", "jobs_per_second", "djangotasks", 50.0),
    ("burst", "jobs_per_second", "procrastinate", 50.0),
    ("schedule", "bulk_per_second", "graphile", 1.0),
    ("precision", "lateness_p99_ms", BEST, 0.2),
    ("precision", "lateness_p99_ms", "celery", 1.0),
]
