"""burst: jobs that are all due at one instant T, scheduled ahead in bulk while the workers are idle.

Drained: the last body has started and the peer's own tables show no unfinished job.
"""

from __future__ import annotations

import time
from random import Random

from scheduler_project.benchmark.timing import share
from tests.bench.peers.peer import PeerFailed
from tests.bench.peers.stage import Stage

LEAD = 8.0
"""Seconds from the first call to T, beside the time that the calls take."""
QUIET = 1.0
"""Seconds before T in which nothing may be scheduled any more."""
LIMIT = 90.0


def run(stage: Stage, jobs: int, random: Random) -> dict[str, float]:
    peer = stage.peer
    with stage.workers(peer.burst) as crew:
        # At a random point of the peer's polling.
        due = round(time.time() + LEAD + jobs / peer.pace + random.random(), 3)
        scheduled = stage.schedule([due] * jobs, bulk=True)
        if scheduled.ended > due - QUIET:
            raise PeerFailed(
                f"scheduling ended {scheduled.ended - due:+.1f} s from T; the machine is too busy"
            )
        if peer.analyze:
            stage.store.analyze()
        drained = stage.wait(crew, jobs, due + LIMIT) - due
    starts = stage.judge(jobs)
    return {
        "jobs_per_second": jobs / drained,
        "first_start_ms": starts.lateness[0] * 1000,
        "lateness_p50_ms": (share(starts.lateness, 0.5) or 0.0) * 1000,
        "lateness_p99_ms": (share(starts.lateness, 0.99) or 0.0) * 1000,
        "early": starts.early,
        "twice": starts.twice,
    }
