"""burst: no-op jobs of 50 tenants, all due at one instant T, scheduled ahead while dispatchers and workers are idle."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from jobs.conf import conf
from scheduler_project.benchmark.fleet import Fleet
from scheduler_project.benchmark.floors import Commit, DeleteLoop
from scheduler_project.benchmark.meter import Meter, Reading
from scheduler_project.benchmark.report import Report, at_least, at_most
from scheduler_project.benchmark.stage import Stage
from scheduler_project.benchmark.timing import ms, ratio, share

JOBS = 50_000
READ_AHEAD = 0.3
"""Seconds before T at which the meter is read: it takes time that the first start would miss."""
SCHEDULED_PER_SECOND = 12_000
"""So slow a machine still has them all scheduled before the look-ahead reaches them."""


@dataclass(frozen=True)
class Drained:
    numbers: range
    seconds: float
    """From T until no job was left unfinished."""
    lateness: list[float]
    before: Reading
    at_due: Reading
    after: Reading

    @property
    def per_second(self) -> float:
        return len(self.numbers) / self.seconds


def drain(stage: Stage, fleet: Fleet, meter: Meter, count: int) -> Drained:
    """One burst, from its scheduling to its end. Nothing is analysed in between."""
    client = stage.client
    lead = 1.0 + conf().look_ahead.total_seconds() + count / SCHEDULED_PER_SECOND
    due = client.now() + lead
    numbers = client.schedule([datetime.fromtimestamp(due, UTC)] * count)
    before = meter.read()
    stage.say(f"{count:,} jobs scheduled, all due in {due - client.now():.1f} s")
    due = client.due(numbers[0])
    time.sleep(max(0.0, due - READ_AHEAD - client.now()))
    at_due = meter.read()
    time.sleep(max(0.0, due - client.now()))
    seconds = client.wait(numbers, fleet) - due
    drained = Drained(numbers, seconds, client.lateness(numbers), before, at_due, meter.read())
    stage.say(f"drained in {seconds:.2f} s: {drained.per_second:,.0f} jobs/s")
    return drained


def run(stage: Stage) -> Report:
    count = stage.count(JOBS)
    loop, commit = DeleteLoop(stage.connection), Commit(stage.connection)
    stage.checkpoint()
    for _ in range(2):
        loop.measure(count)
    commit.measure()
    with stage.fleet() as fleet:
        meter = Meter(stage.connection, fleet.pids)
        drained = drain(stage, fleet, meter, count)
        commit.measure()
    after = meter.with_all_commits(drained.after)
    commit.measure()
    for _ in range(3):
        loop.measure(count)
    first = ms(share(drained.lateness, 0.0))
    return Report(
        workload="burst",
        parameters=stage.parameters(jobs=count, dispatchers=1),
        figures={
            "jobs_per_second": drained.per_second,
            "drained_s": drained.seconds,
            "first_start_ms": first,
            "lateness_p50_ms": ms(share(drained.lateness, 0.5)),
            "lateness_p99_ms": ms(share(drained.lateness, 0.99)),
            **(after - drained.before).per_job(count),
            "server_cpu_us_per_job_after_T": (after - drained.at_due).per_job(count)["server_cpu_us_per_job"],
        },
        floors={"delete_loop": loop.as_json(), "commit": commit.as_json()},
        reaches={
            "jobs_per_second": at_least(0.20, drained.per_second / loop.value),
            "first_start_ms": at_most(60, ratio(first, commit.value)),
        },
        verdict=stage.client.judge(),
    )
