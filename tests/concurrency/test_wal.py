"""What a job costs in write-ahead log, from schedule to outcome, beside one row with one index: it must not creep up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from jobs.leases import Claimer, settle
from jobs.models import Job
from jobs.newjob import NewJob
from jobs.registry import registry
from jobs.results import Completed, Settlement
from tests.factories import process
from tests.racing import Connection

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]
JOBS, ROUNDS, MOST = 200, 7, 100
PAYLOAD = {"text": "y" * 80}


def wal_of(connection: Connection, act: Callable[[], object]) -> int:
    """Bytes of one round. Other sessions and the first touch of a page after a checkpoint add to it."""
    begun = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
    act()
    row = connection.execute("SELECT pg_current_wal_insert_lsn() - %s::pg_lsn", begun).fetchone()
    assert row
    return int(row[0])


def test_a_job_costs_no_more_than_so_many_rows(connection: Connection) -> None:
    connection.execute("CREATE TABLE wal_row (LIKE jobs_job INCLUDING DEFAULTS, PRIMARY KEY (due_at, id))")
    mine = Claimer("test.noop", process(connection), registry.names())

    def rows() -> None:
        connection.execute(
            "INSERT INTO wal_row (id, due_at, tenant_id, job_type, queue, priority, payload, max_attempts) "
            "SELECT gen_random_uuid(), now(), 1, 'test.noop', 'test.noop', 0, %s::jsonb, 20 FROM generate_series(1, %s)",
            ['{"text": "' + PAYLOAD["text"] + '"}', JOBS],
        )

    def jobs() -> None:
        Job.objects.schedule_many(NewJob(job_type="test.noop", payload=PAYLOAD) for _ in range(JOBS))
        left = JOBS
        while left:
            claims = mine.claim(connection, JOBS, JOBS)
            settle(connection, [Settlement(claim.held, Completed(), datetime.now(UTC)) for claim in claims])
            left -= len(claims)

    try:
        bare = min(wal_of(connection, rows) for _ in range(ROUNDS))
        whole = next((found for _ in range(MOST) if (found := wal_of(connection, jobs)) < 7.5 * bare), None)
    finally:
        connection.execute("DROP TABLE wal_row")
    assert whole is not None, "not once in so many rounds, however quiet the others were"
