"""Flow: tenants that schedule a job now and then, each due at once; and backlogs beside which they do it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from jobs.conf import conf
from scheduler_project.benchmark.fleet import Fleet
from scheduler_project.benchmark.stage import Stage
from scheduler_project.benchmark.workloads.burst import SCHEDULED_PER_SECOND

TICK = 0.05
"""Seconds between two calls of schedule_many."""


def flow(
    stage: Stage, fleet: Fleet, tenants: Sequence[str], *, every: float, body: float, seconds: float
) -> range:
    """Each of these tenants schedules a job that sleeps for `body` every so many seconds, evenly spread; the numbers of
    all, when the last was scheduled."""
    client = stage.client
    first, begun, done = client.next_number, time.monotonic(), 0
    total = max(len(tenants), round(len(tenants) * seconds / every))
    while done < total:
        time.sleep(TICK)
        due = min(total, round((time.monotonic() - begun) * len(tenants) / every))
        if due > done:
            client.schedule_sleeps(
                client.now(), [(tenants[n % len(tenants)], body) for n in range(done, due)]
            )
            done = due
    fleet.check()
    return range(first, client.next_number)


def backlog(stage: Stage, sleeps: Sequence[tuple[str, float]]) -> tuple[range, float]:
    """Jobs of (tenant, seconds), all due at one instant, scheduled ahead of it; their numbers and the instant, when it
    has come."""
    client = stage.client
    due = client.now() + 1.0 + conf().look_ahead.total_seconds() + len(sleeps) / SCHEDULED_PER_SECOND
    numbers = client.schedule_sleeps(due, sleeps)
    stage.say(f"{len(sleeps):,} jobs scheduled, all due in {due - client.now():.1f} s")
    time.sleep(max(0.0, due - client.now()))
    return numbers, due
