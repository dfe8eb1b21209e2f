"""A crowd of rows beside which others are measured: jobs that wait for later days, and jobs that have ended.

Written by SQL as the scheduler's own verbs would have left them: an id carries its due time.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, LiteralString

import psycopg

from jobs import clock, partitions
from jobs.partitions import bounds, day_of
from jobs.tenants import tenant_ids
from scheduler_project.benchmark.client import TENANTS
from scheduler_project.benchmark.stage import Stage
from scheduler_project.benchmark.work.tasks import NOOP

Connection = psycopg.Connection[Any]

DAYS = 30

_JOB: LiteralString = """
    WITH job AS (
        INSERT INTO jobs_job (id, due_at, tenant_id, job_type, queue, priority, payload, max_attempts)
        SELECT
            (lpad(to_hex(ms), 12, '0') || '7' || left(hash, 3) || '8' || substr(hash, 4, 15))::uuid,
            'epoch'::timestamptz + ms * interval '1 millisecond',
            (%(tenants)s::bigint[])[1 + n %% %(each)s], %(type)s, %(type)s, 0,
            jsonb_build_object('number', n, 'template', 'welcome', 'text', repeat('y', 55)), 20
        FROM generate_series(0, %(count)s - 1) n
        CROSS JOIN LATERAL (
            SELECT %(start)s + (n * 86399999.0 / %(count)s)::bigint AS ms, md5(%(start)s || ' ' || n) AS hash
        ) made
        RETURNING id, due_at, tenant_id, queue, job_type, priority, max_attempts
    )
"""
_TIMER: LiteralString = """
    INSERT INTO jobs_timer (job_id, due_at, tenant_id, queue, job_type, priority, max_attempts)
    SELECT id, due_at, tenant_id, queue, job_type, priority, max_attempts FROM job
"""
_OUTCOME: LiteralString = """
    INSERT INTO jobs_outcome
        (job_id, due_at, state, attempt, max_attempts, crashes, lease_token, started_at, finished_at, process_id)
    SELECT id, due_at, 'completed', 1, max_attempts, 0, gen_random_uuid(), due_at, due_at + interval '5 ms', 1 FROM job
"""


def fill(stage: Stage, parked: int, finished: int) -> None:
    """That many jobs due in the 30 days after tomorrow, and that many that ran in the 30 days before today."""
    now = clock.now()
    today = day_of(now)
    ahead = [today + timedelta(days=2 + n) for n in range(DAYS)]
    past = [today - timedelta(days=1 + n) for n in range(DAYS)]
    partitions.ensure([*ahead, *past])
    for number, (later, earlier) in enumerate(zip(ahead, past, strict=True), 1):
        _insert(stage.connection, _JOB + _TIMER, later, parked // DAYS)
        _insert(stage.connection, _JOB + _OUTCOME, earlier, finished // DAYS)
        if number % 6 == 0:
            stage.say(f"{parked * number // DAYS:,} parked, {finished * number // DAYS:,} finished")
    stage.connection.execute("VACUUM (ANALYZE) jobs_timer, jobs_job")
    partitions.seal(now)


def _insert(connection: Connection, statement: LiteralString, day: date, count: int) -> None:
    tenants = tenant_ids(f"tenant {n}" for n in range(TENANTS))
    connection.execute(
        statement,
        {
            "tenants": sorted(tenants.values()),
            "each": TENANTS,
            "type": NOOP,
            "count": count,
            "start": round(bounds(day)[0].timestamp() * 1000),
        },
    )
