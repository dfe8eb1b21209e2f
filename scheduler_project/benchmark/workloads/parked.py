"""parked: burst and precision on an empty scheduler, and again beside jobs parked for later and jobs that have ended."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from scheduler_project.benchmark import crowd
from scheduler_project.benchmark.meter import Meter
from scheduler_project.benchmark.report import Report, at_most
from scheduler_project.benchmark.stage import Stage
from scheduler_project.benchmark.timing import ms, ratio, share
from scheduler_project.benchmark.workloads import burst, precision

PARKED, FINISHED = 1_000_000, 500_000
FULL = 10
BURSTS = 3
"""The figure is their median."""
TRICKLE = 0.01
"""Jobs of the precision part per job of a burst: 500 for 50,000."""
LEAST = 50
"""At least so many of them."""


@dataclass(frozen=True)
class Phase:
    drained_s: float
    lateness: list[float]
    costs: dict[str, float | None]

    def figures(self, name: str) -> dict[str, float | None]:
        return {
            f"{name}_drained_s": self.drained_s,
            f"{name}_lateness_p50_ms": ms(share(self.lateness, 0.5)),
            f"{name}_lateness_p99_ms": ms(share(self.lateness, 0.99)),
            **{f"{name}_{cost}": value for cost, value in self.costs.items()},
        }


def run(stage: Stage) -> Report:
    count = stage.count(burst.JOBS)
    parked, finished = (rows * (FULL if stage.full else 1) for rows in (PARKED, FINISHED))
    empty = _measure(stage, count)
    crowd.fill(stage, parked, finished)
    crowded = _measure(stage, count)
    before, after = empty.figures("empty"), crowded.figures("crowded")
    compared = {
        f"crowded_{name}": ratio(after[f"crowded_{name}"], before[f"empty_{name}"])
        for name in ("drained_s", "lateness_p50_ms")
    }
    return Report(
        workload="parked",
        parameters=stage.parameters(
            jobs=count,
            bursts=BURSTS,
            parked=parked,
            finished=finished,
            days=crowd.DAYS,
        ),
        figures={**before, **after},
        floors={
            "empty_drained_s": {"value": empty.drained_s, "unit": "s", "sql": []},
            "empty_lateness_p50_ms": {"value": before["empty_lateness_p50_ms"], "unit": "ms", "sql": []},
        },
        reaches={name: at_most(1.15, value) for name, value in compared.items()},
        verdict=stage.client.judge(),
    )


def _measure(stage: Stage, count: int) -> Phase:
    stage.checkpoint()
    with stage.fleet() as fleet:
        meter = Meter(stage.connection, fleet.pids)
        bursts = [burst.drain(stage, fleet, meter, count) for _ in range(BURSTS)]
        numbers = precision.trickle(stage, fleet, max(LEAST, round(count * TRICKLE)))
    costs = sum((each.after - each.before for each in bursts[1:]), bursts[0].after - bursts[0].before)
    return Phase(
        statistics.median(each.seconds for each in bursts),
        stage.client.lateness(numbers),
        costs.per_job(BURSTS * count),
    )
