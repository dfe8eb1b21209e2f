"""wal: the write-ahead log of a job from its insert to its outcome, scheduled 1 to 30 days ahead in random order.

Nobody waits for that long: the client's clock is set back by a month while it schedules, so to the scheduler's processes
all of them are due at once. Each of the two parts begins with a checkpoint, as days between them would bring one: what it
touches first is logged as a whole page where full_page_writes is on.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

from jobs import clock, partitions
from scheduler_project.benchmark.client import payload
from scheduler_project.benchmark.floors import WalOfRow
from scheduler_project.benchmark.meter import Meter
from scheduler_project.benchmark.report import Report, at_most
from scheduler_project.benchmark.stage import Stage

JOBS = 20_000
BATCH = 100
"""Jobs of one transaction, as in the floor."""
DAYS = (1, 30)
BACK = timedelta(days=30, hours=6)
"""The oldest of them is then due within the days that are kept."""


def run(stage: Stage) -> Report:
    count = stage.count(JOBS)
    meter, row = Meter(stage.connection, []), WalOfRow(stage.connection)
    now = clock.now()
    partitions.ensure_days(partitions.day_of(now - BACK), partitions.day_of(now))
    partitions.seal(now)  # else upkeep would do it while we look
    stage.checkpoint()
    row.measure(count, json.dumps(payload(0)), lambda: meter.read().wal)
    stage.checkpoint()
    before = meter.read()
    numbers = _schedule(stage, count)
    inserted = meter.read() - before
    stage.say(f"{count:,} jobs scheduled")
    stage.checkpoint()
    before = meter.read()
    with stage.fleet() as fleet:
        stage.client.wait(numbers, fleet)
        after = meter.read()
    ran = meter.with_all_commits(after) - before
    total = (inserted + ran).per_job(count)
    return Report(
        workload="wal",
        parameters=stage.parameters(jobs=count, jobs_per_transaction=BATCH, days_ahead=DAYS),
        figures={
            **total,
            "python_cpu_us_per_job": None,  # the start of the processes is in it
            "insert_wal_bytes_per_job": inserted.per_job(count)["wal_bytes_per_job"],
            "run_wal_bytes_per_job": ran.per_job(count)["wal_bytes_per_job"],
        },
        floors={"row": row.as_json()},
        reaches={"wal_bytes_per_job": at_most(7.5, (inserted.wal + ran.wal) / count / row.value)},
        verdict=stage.client.judge(),
    )


def _schedule(stage: Stage, count: int) -> range:
    client, back = stage.client, BACK.total_seconds()
    first = client.next_number
    with _set_back():
        for done in range(0, count, BATCH):
            ahead = [random.uniform(*DAYS) * 86400 for _ in range(min(BATCH, count - done))]  # noqa: S311
            then = client.now() - back
            client.schedule(datetime.fromtimestamp(then + seconds, UTC) for seconds in ahead)
    return range(first, client.next_number)


@contextmanager
def _set_back() -> Iterator[None]:
    """What schedule() takes for the database's time."""
    now = clock.now
    with patch.object(clock, "now", lambda using="default": now(using) - BACK):
        yield
