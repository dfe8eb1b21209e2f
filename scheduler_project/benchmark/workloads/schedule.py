"""schedule: jobs by schedule_many, and by single calls in their own transactions, due tomorrow; none of them runs."""

from __future__ import annotations

import os
import statistics
import time
from datetime import UTC, datetime, timedelta

from psycopg.types.json import Jsonb

from jobs.ids import IdRun, ceil_ms
from jobs.models import Job
from scheduler_project.benchmark.client import TENANTS, payload
from scheduler_project.benchmark.floors import BareRow, Copy, Insert
from scheduler_project.benchmark.meter import NOTHING, Meter
from scheduler_project.benchmark.report import Report, at_least, at_most
from scheduler_project.benchmark.stage import Stage
from scheduler_project.benchmark.timing import share
from scheduler_project.benchmark.work.tasks import NOOP

JOBS = 50_000
ROUNDS = 5
"""Of the bulk and its floor in turn; the figures are medians."""
SINGLES = 0.04
"""Single calls per job of the bulk: 2,000 for 50,000."""
TURN = 100
"""Single calls between as many of the floor's."""


def run(stage: Stage) -> Report:
    count = stage.count(JOBS)
    turns = max(1, round(count * SINGLES / TURN))
    due_at = datetime.fromtimestamp(stage.client.now(), UTC) + timedelta(days=1)
    stage.checkpoint()
    copy, rates, bulk = _bulk(stage, count, due_at)
    insert, times, single = _single(stage, turns, due_at)
    rate, p50 = statistics.median(rates), statistics.median(times)
    return Report(
        workload="schedule",
        parameters=stage.parameters(jobs=count, rounds=ROUNDS, singles=turns * TURN, payload_bytes=100),
        figures={
            "bulk_per_second": rate,
            "single_p50_ms": p50,
            "single_p99_ms": share(sorted(times), 0.99),
            **{f"bulk_{name}": value for name, value in bulk.items()},
            **{f"single_{name}": value for name, value in single.items()},
        },
        floors={"copy": copy.as_json(), "insert": insert.as_json()},
        reaches={
            "bulk_per_second": at_least(0.35, rate / copy.value),
            "single_p50_ms": at_most(2, p50 / insert.value),
        },
    )


def _bulk(stage: Stage, count: int, due_at: datetime) -> tuple[Copy, list[float], dict[str, float | None]]:
    """Each round all of them by one call."""
    copy, meter = Copy(stage.connection), Meter(stage.connection, [os.getpid()])
    rows = _bare_rows(count, due_at)
    rates, costs = [], NOTHING
    for number in range(1, ROUNDS + 1):
        copy.measure(rows)
        jobs = stage.client.new_jobs([due_at] * count)
        before, begun = meter.read(), time.perf_counter()
        Job.objects.schedule_many(jobs)
        rates.append(count / (time.perf_counter() - begun))
        costs += meter.read() - before
        stage.say(f"{number} of {ROUNDS}: {rates[-1]:,.0f} jobs/s, bare {copy.samples[-1]:,.0f}")
    return copy, rates, costs.per_job(ROUNDS * count)


def _single(
    stage: Stage, turns: int, due_at: datetime
) -> tuple[Insert, list[float], dict[str, float | None]]:
    insert, meter = Insert(stage.connection), Meter(stage.connection, [os.getpid()])
    rows = _bare_rows(turns * TURN, due_at)
    times, costs = [], NOTHING
    for turn in range(turns):
        insert.measure(rows[turn * TURN : (turn + 1) * TURN])
        before = meter.read()
        for number in range(turn * TURN, (turn + 1) * TURN):
            begun = time.perf_counter()
            Job.objects.schedule(NOOP, payload(number), due_at=due_at, tenant=f"tenant {number % TENANTS}")
            times.append((time.perf_counter() - begun) * 1000)
        costs += meter.read() - before
    stage.say(f"{len(times):,} single calls")
    return insert, times, costs.per_job(len(times))


def _bare_rows(count: int, due_at: datetime) -> list[BareRow]:
    """What the jobs are, ready for the floors."""
    ids, due_at = IdRun(), ceil_ms(due_at)
    return [
        BareRow(ids.next(due_at), due_at, n % TENANTS, NOOP, NOOP, 0, Jsonb(payload(n)), 20)
        for n in range(count)
    ]
