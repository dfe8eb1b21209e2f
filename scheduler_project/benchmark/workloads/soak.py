"""soak: a million jobs, burst after burst through the same processes; their memory and pace at the beginning, in the
middle and at the end. Of their memory the process counts that has grown most: in the sum of all it would hardly show."""

from __future__ import annotations

from scheduler_project.benchmark.meter import Meter, tree_memory
from scheduler_project.benchmark.report import Report, at_least, at_most
from scheduler_project.benchmark.stage import Stage
from scheduler_project.benchmark.timing import growth, ratio, thirds
from scheduler_project.benchmark.workloads import burst

JOBS = 1_000_000
ROUNDS = 20
WARM = 2
"""Rounds in which a process gets what it keeps: arenas, caches, marks of every tenant."""


def run(stage: Stage) -> Report:
    count = stage.count(JOBS)
    rates: list[float] = []
    sizes: list[dict[int, float]] = []
    stage.checkpoint()
    with stage.fleet() as fleet:
        meter = Meter(stage.connection, fleet.pids)
        for number in range(WARM + ROUNDS):
            stage.say(f"round {number + 1} of {WARM + ROUNDS}")
            rates.append(burst.drain(stage, fleet, meter, max(1, count // ROUNDS)).per_second)
            sizes.append(tree_memory(fleet.pids))
    rates, sizes = rates[WARM:], sizes[WARM:]
    rate, rate_middle, rate_end = thirds(rates)
    size, _, size_end = thirds([sum(size.values()) / 2**20 for size in sizes])
    grown_middle, grown_end = growth(sizes)
    return Report(
        workload="soak",
        parameters=stage.parameters(jobs=count, rounds=ROUNDS),
        figures={
            "memory_end_mib": size_end,
            "jobs_per_second_end": rate_end,
            "jobs_per_second_middle": rate_middle,
        },
        floors={
            "memory": {"value": size, "unit": "MiB at the beginning", "sql": []},
            "jobs_per_second": {"value": rate, "unit": "jobs per second at the beginning", "sql": []},
        },
        reaches={
            "memory_end_worst": at_most(1.1, grown_end),
            "memory_middle_worst": at_most(1.1, grown_middle),
            "jobs_per_second_end": at_least(1 / 1.1, ratio(rate_end, rate)),
            "jobs_per_second_middle": at_least(1 / 1.1, ratio(rate_middle, rate)),
        },
        verdict=stage.client.judge(),
    )
