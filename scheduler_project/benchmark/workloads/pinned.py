"""pinned: 600 jobs a second while another connection holds an old snapshot, so that no dead row can be removed.

Scheduled 1 to 10 seconds ahead. The last half minute is compared with the last half minute before the snapshot was taken;
the time of a claim is that of the workers' own claims that took something (`claims`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from jobs import db
from scheduler_project.benchmark import claims
from scheduler_project.benchmark.meter import Meter
from scheduler_project.benchmark.report import Report, at_least, at_most
from scheduler_project.benchmark.stage import Stage
from scheduler_project.benchmark.timing import ms, ratio, share
from scheduler_project.benchmark.workloads.steady import PER_SECOND, stream

FREE, PINNED, WINDOW, LEAD = 40, 180, 30, 10
"""Seconds before the snapshot is taken, with it, of the end of either that are compared, and of the longest lead."""
JOBS = PER_SECOND * (FREE + PINNED)


@dataclass(frozen=True)
class Window:
    """What began or was claimed in some seconds."""

    per_second: float
    claim_p50_ms: float | None
    lateness_p99_ms: float | None


def run(stage: Stage) -> Report:
    count = stage.count(JOBS)
    shrunk = min(1.0, count / JOBS)
    noted = stage.folder / "claims"
    os.environ[claims.VARIABLE] = str(noted)
    stage.checkpoint()
    with stage.fleet() as fleet:
        meter = Meter(stage.connection, fleet.pids)
        before = meter.read()
        free = stream(stage, fleet, count * FREE // (FREE + PINNED), (0.1 * LEAD * shrunk, LEAD * shrunk))
        taken_at = time.time()
        with _snapshot():
            stage.say("an old snapshot is held from now on")
            pinned = stream(stage, fleet, count - len(free), (0.1 * LEAD * shrunk, LEAD * shrunk))
            ended_at = time.time()
            numbers = range(free.start, pinned.stop)
            stage.client.wait(numbers, fleet)
            dead = _dead(stage)
        after = meter.read()
    taken = claims.read_claims(noted)
    first = _window(stage, numbers, taken, taken_at, WINDOW * shrunk)
    last = _window(stage, numbers, taken, ended_at, WINDOW * shrunk)
    return Report(
        workload="pinned",
        parameters=stage.parameters(
            jobs=count,
            jobs_per_second=PER_SECOND,
            pinned_s=round(PINNED * shrunk, 1),
            compared_s=round(WINDOW * shrunk, 1),
            scheduled_ahead_s=(0.1 * LEAD * shrunk, LEAD * shrunk),
        ),
        figures={
            "jobs_per_second": last.per_second,
            "claim_p50_ms": last.claim_p50_ms,
            "lateness_p99_ms": last.lateness_p99_ms,
            "lateness_p99_ms_before": first.lateness_p99_ms,
            "dead_queue_rows": dead,
            **(meter.with_all_commits(after) - before).per_job(count),
        },
        floors={
            "jobs_per_second": {"value": first.per_second, "unit": "jobs per second before", "sql": []},
            "claim_p50_ms": {"value": first.claim_p50_ms, "unit": "ms before", "sql": []},
        },
        reaches={
            "jobs_per_second": at_least(0.97, ratio(last.per_second, first.per_second)),
            "claim_p50_ms": at_most(1.3, ratio(last.claim_p50_ms, first.claim_p50_ms)),
        },
        verdict=stage.client.judge(),
    )


@contextmanager
def _snapshot() -> Iterator[None]:
    with db.connect(name="snapshot") as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        connection.execute(
            "SET LOCAL idle_in_transaction_session_timeout = 0"
        )  # our sessions end such owners
        connection.execute("SELECT FROM jobs_queueentry LIMIT 1")
        yield
        connection.execute("ROLLBACK")


def _window(
    stage: Stage, numbers: range, taken: list[tuple[float, float]], end: float, seconds: float
) -> Window:
    begin = end - seconds
    began = [n for n in numbers if begin <= stage.client.ledger.start(n) < end]
    claimed = sorted(took for at, took in taken if begin <= at < end)
    return Window(
        len(began) / seconds, ms(share(claimed, 0.5)), ms(share(stage.client.lateness(began), 0.99))
    )


def _dead(stage: Stage) -> int:
    row = stage.connection.execute(
        "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'jobs_queueentry'"
    ).fetchone()
    return int(row[0]) if row else 0
