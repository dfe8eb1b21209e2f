"""schedule: jobs due tomorrow, one by one and by the bulk API; no worker runs."""

from __future__ import annotations

import time
from random import Random

from tests.bench.peers.stage import Stage

SINGLES = 0.025
"""Single calls per job of the bulk: 500 for 20,000."""
DAY = 86400.0


def run(stage: Stage, jobs: int, random: Random) -> dict[str, float]:
    due = round(time.time() + DAY)
    singles = max(100, round(jobs * SINGLES))
    single = stage.schedule([due] * singles, bulk=False)
    stage.store.checkpoint()
    bulk = stage.schedule([due] * jobs, bulk=True, first=singles)
    return {"bulk_per_second": jobs / bulk.seconds, "single_p50_ms": single.p50_ms}
