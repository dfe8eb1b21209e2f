"""UN-03: entries of a type that a worker does not know, and others do, stay in their queue: it passes them once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import psycopg

from jobs.leases import Claimer, register
from jobs.models import Job, ProcessKind
from jobs.newjob import NewJob
from tests.factories import DjangosConnection, come_due, schedule
from tests.schema.explain import Recorder

Connection = psycopg.Connection[Any]
MANY = 3_000


def test_un_03_what_only_others_know_is_passed_once_and_not_by_each_claim(here: Connection) -> None:
    other = schedule("test.echo", queue="q", delay=-timedelta(minutes=1))
    here.execute(
        "INSERT INTO jobs_queueentry (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, "
        "max_attempts, crashes, cancel_requested) SELECT gen_random_uuid(), due_at, run_at, tenant_id, queue, job_type, "
        "priority, 0, max_attempts, 0, false FROM jobs_queueentry, generate_series(1, %s) WHERE job_id = %s",
        [MANY, other.pk],
    )
    Job.objects.schedule_many([NewJob(job_type="test.noop", queue="q")] * 5)
    come_due(here)
    lease = timedelta(hours=1)
    register(here, ProcessKind.WORKER, types=["test.echo"], lease=lease)
    mine = register(here, ProcessKind.WORKER, types=["test.noop"], lease=lease)
    recorder = Recorder(cast(Connection, DjangosConnection()))
    stand_in: Any = recorder
    claimer = Claimer("q", mine, ["test.noop"])
    assert len(claimer.claim(stand_in, 1, 1)) == 1
    assert read(recorder) >= MANY
    for _ in range(4):
        assert len(claimer.claim(stand_in, 1, 1)) == 1
    assert read(recorder) <= 4 * 4
    schedule(queue="q")
    come_due(here)
    claimer.looks.forget()
    assert len(claimer.claim(stand_in, 1, 1)) == 1
    assert read(recorder) <= 4 * 2


def read(recorder: Recorder) -> int:
    """Rows that claims have looked at since the last call."""
    rows = sum(seen.read for seen in recorder.seen if seen.name == "claim")
    recorder.seen.clear()
    return rows
