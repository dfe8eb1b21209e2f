"""precision: jobs due at random instants, on a system that has nothing else to do."""

from __future__ import annotations

import time
from random import Random

from scheduler_project.benchmark.timing import share
from tests.bench.peers.stage import Stage

JOBS, SPAN = 200, 20.0
LEAD = 8.0
"""Seconds from the first call to the first job that may be due."""
LIMIT = 30.0


def run(stage: Stage, jobs: int, random: Random) -> dict[str, float]:
    """`jobs` has no say: more of them would be another workload."""
    with stage.workers(stage.peer.precision) as crew:
        begin = time.time() + LEAD
        dues = sorted(round(begin + random.random() * SPAN, 3) for _ in range(JOBS))
        stage.schedule(dues, bulk=False)
        stage.wait(crew, JOBS, begin + SPAN + LIMIT)
    starts = stage.judge(JOBS)
    return {
        "lateness_p50_ms": (share(starts.lateness, 0.5) or 0.0) * 1000,
        "lateness_p99_ms": (share(starts.lateness, 0.99) or 0.0) * 1000,
        "lateness_max_ms": starts.lateness[-1] * 1000,
        "early": starts.early,
        "twice": starts.twice,
    }
