"""Jobs in every state, in the transaction of a test, and everything that is stored of a job."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg

from jobs.models import Job, UniqueKey
from jobs.results import Snoozed
from jobs.states import JobState
from tests.factories import claim, finish, job_in, process, schedule

Connection = psycopg.Connection[Any]

SITUATIONS = [state.value for state in JobState] + ["snoozed"]
"""Every state; scheduled twice: as a timer and as an entry that waits."""


def job_so(situation: str, here: Connection, **options: Any) -> Job:
    options.setdefault("queue", situation)  # making one claims whatever is in its queue
    if situation != "snoozed":
        return job_in(JobState(situation), here, **options)
    job = schedule(**options)
    finish(here, claim(here, job, process(here)), Snoozed(timedelta(hours=1)))
    return job


def stored(here: Connection, job: Job) -> dict[str, Any]:
    """Every row of a job by its table: equal before and after means that nothing was written."""
    found = {
        table: here.execute(f"SELECT t.* FROM {table} t WHERE job_id = %s", [job.id]).fetchall()
        for table in ("jobs_timer", "jobs_queueentry", "jobs_outcome", "jobs_attempt")
    }
    return {**found, "jobs_uniquekey": list(UniqueKey.objects.filter(job_id=job.id).values())}


def places(here: Connection, job: Job) -> list[str]:
    """Where the job is; the invariant wants exactly one."""
    rows = stored(here, job)
    return [name for name in ("jobs_timer", "jobs_queueentry", "jobs_outcome") for _ in rows[name]]
