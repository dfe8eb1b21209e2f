"""precision: jobs due at random instants, on a system that has nothing else to do."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from jobs.conf import conf
from scheduler_project.benchmark.fleet import Fleet
from scheduler_project.benchmark.floors import Commit
from scheduler_project.benchmark.meter import Meter
from scheduler_project.benchmark.report import Report, at_most
from scheduler_project.benchmark.stage import Stage
from scheduler_project.benchmark.timing import ms, ratio, share

JOBS = 500
PER_SECOND = 500 / 30


def trickle(stage: Stage, fleet: Fleet, count: int) -> range:
    """Schedule them all ahead of the first dispatch and wait until they ran; their numbers."""
    begin = stage.client.now() + conf().look_ahead.total_seconds() + 2
    end = begin + count / PER_SECOND
    dues = [datetime.fromtimestamp(random.uniform(begin, end), UTC) for _ in range(count)]  # noqa: S311
    numbers = stage.client.schedule(dues)
    stage.say(f"{count:,} jobs scheduled, due at random instants in {end - begin:.0f} s")
    stage.client.wait(numbers, fleet)
    return numbers


def run(stage: Stage) -> Report:
    count = stage.count(JOBS)
    commit = Commit(stage.connection)
    stage.checkpoint()
    commit.measure()
    with stage.fleet() as fleet:
        commit.measure()
        meter = Meter(stage.connection, fleet.pids)
        before = meter.read()
        numbers = trickle(stage, fleet, count)
        after = meter.read()
    commit.measure()
    lateness = stage.client.lateness(numbers)
    p50, p99 = ms(share(lateness, 0.5)), ms(share(lateness, 0.99))
    return Report(
        workload="precision",
        parameters=stage.parameters(jobs=count, jobs_per_second=PER_SECOND),
        figures={
            "lateness_p50_ms": p50,
            "lateness_p99_ms": p99,
            "lateness_max_ms": ms(share(lateness, 1.0)),
            **(meter.with_all_commits(after) - before).per_job(count),
        },
        floors={"commit": commit.as_json()},
        reaches={
            "lateness_p50_ms": at_most(5, ratio(p50, commit.value)),
            "lateness_p99_ms": at_most(15, ratio(p99, commit.value)),
        },
        verdict=stage.client.judge(),
    )
