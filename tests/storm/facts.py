"""What the scheduler says in the end, read from its tables: how each job ended, and what its own checks find. Times are
turned into boot time, the clock of the ledger."""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg

from jobs.clock import boottime
from tests.storm.cluster import Cluster

_JOBS = """
    SELECT job.id, job.job_type, extract(epoch FROM job.due_at)::float8, job.cron_id IS NOT NULL, outcome.state,
        outcome.attempt, outcome.max_attempts, outcome.crashes, process.pid,
        extract(epoch FROM outcome.finished_at)::float8
    FROM jobs_job job
    LEFT JOIN jobs_outcome outcome ON outcome.due_at = job.due_at AND outcome.job_id = job.id
    LEFT JOIN jobs_process process ON process.id = outcome.process_id
"""
CHECKS = ("checkjobs", "checkcron")


@dataclass(frozen=True, slots=True)
class Fact:
    job_type: str
    due: float
    is_cron: bool
    state: str | None
    """None: it has not ended."""
    attempt: int = 0
    max_attempts: int = 0
    crashes: int = 0
    pid: int | None = None
    finished: float | None = None


@dataclass
class Facts:
    jobs: dict[UUID, Fact] = field(default_factory=dict)
    effects: Counter[UUID] = field(default_factory=Counter)
    """Rows that atomic jobs have written."""
    breaches: list[str] = field(default_factory=list)
    """What checkjobs and checkcron complain of."""
    idle: list[str] = field(default_factory=list)
    """Processes that did not work again after the storm."""


def gather(cluster: Cluster, idle: list[str]) -> Facts:
    facts = Facts(idle=idle)
    with cluster.server.session() as connection:
        offset = _offset(connection)
        for (
            job_id,
            job_type,
            due,
            is_cron,
            state,
            attempt,
            most,
            crashes,
            pid,
            finished,
        ) in connection.execute(_JOBS):
            facts.jobs[job_id] = Fact(
                job_type,
                due - offset,
                is_cron,
                state,
                attempt or 0,
                most or 0,
                crashes or 0,
                pid,
                None if finished is None else finished - offset,
            )
        rows = connection.execute("SELECT job_id, count(*) FROM storm_effect GROUP BY job_id").fetchall()
        facts.effects = Counter(dict(rows))
    for check in CHECKS:
        facts.breaches += _complaints(cluster, check)
    return facts


def _offset(connection: psycopg.Connection[Any]) -> float:
    """Seconds from boot time to the database's time; too small by the time of the reply, never too large: what is due
    then looks due later than it is, so that nothing early is overlooked."""
    best = float("-inf")
    for _ in range(20):
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        best = max(best, (row[0] if row else 0.0) - boottime())
    return best


def _complaints(cluster: Cluster, command: str) -> list[str]:
    process = cluster.manage(command)
    try:
        code = process.wait(120)
    except subprocess.TimeoutExpired:
        process.kill()
        return [f"{command} did not end within 120 s"]
    if not code:
        return []
    said = (cluster.folder / "manage.log").read_text(errors="replace").splitlines()
    return [f"{command}: {line}" for line in said[-10:]]
