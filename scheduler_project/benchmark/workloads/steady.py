"""steady: 600 jobs a second for a minute, each scheduled 1 to 30 seconds ahead at a random instant."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime

from scheduler_project.benchmark.fleet import Fleet
from scheduler_project.benchmark.floors import Commit
from scheduler_project.benchmark.meter import Meter
from scheduler_project.benchmark.report import Report, at_most
from scheduler_project.benchmark.stage import Stage
from scheduler_project.benchmark.timing import ms, ratio, share

PER_SECOND = 600
SECONDS = 60
LEAD = (1.0, 30.0)
BATCH = 30
"""Jobs per call of schedule_many, 20 calls a second."""
TOLD = 10.0


def stream(stage: Stage, fleet: Fleet, count: int, lead: tuple[float, float]) -> range:
    """Schedule at an even pace, and go on when the last was scheduled; their numbers."""
    client, begun, told = stage.client, time.monotonic(), 0.0
    first = client.next_number
    for done in range(0, count, BATCH):
        time.sleep(max(0.0, begun + done / PER_SECOND - time.monotonic()))
        now = client.now()
        client.schedule(
            datetime.fromtimestamp(now + random.uniform(*lead), UTC)  # noqa: S311
            for _ in range(min(BATCH, count - done))
        )
        if time.monotonic() - begun > told + TOLD:
            told += TOLD
            fleet.check()
            stage.say(f"{done:,} of {count:,} scheduled")
    return range(first, client.next_number)


def run(stage: Stage) -> Report:
    count = stage.count(PER_SECOND * SECONDS)
    commit = Commit(stage.connection)
    stage.checkpoint()
    commit.measure()
    with stage.fleet() as fleet:
        commit.measure()
        meter = Meter(stage.connection, fleet.pids)
        before, begun, client_cpu = meter.read(), time.monotonic(), time.process_time()
        numbers = stream(stage, fleet, count, LEAD)
        rate, client_cpu = count / (time.monotonic() - begun), time.process_time() - client_cpu
        stage.client.wait(numbers, fleet)
        after = meter.read()
    commit.measure()
    lateness = stage.client.lateness(numbers)
    p99 = ms(share(lateness, 0.99))
    return Report(
        workload="steady",
        parameters=stage.parameters(
            jobs=count,
            jobs_per_second=PER_SECOND,
            scheduled_ahead_s=LEAD,
        ),
        figures={
            "scheduled_per_second": rate,
            "lateness_p50_ms": ms(share(lateness, 0.5)),
            "lateness_p99_ms": p99,
            "lateness_max_ms": ms(share(lateness, 1.0)),
            **(meter.with_all_commits(after) - before).per_job(count),
            "client_cpu_us_per_job": round(client_cpu * 1e6 / count, 1),
        },
        floors={"commit": commit.as_json()},
        reaches={"lateness_p99_ms": at_most(20, ratio(p99, commit.value))},
        verdict=stage.client.judge(),
    )
