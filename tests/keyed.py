"""Jobs with a concurrency key: due ones, who has a place and who waits for one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg

from jobs.leases import admit, declare
from jobs.models import Job, QueueEntry
from jobs.registry import JobType
from jobs.results import Key
from tests.factories import schedule

Connection = psycopg.Connection[Any]


def keyed(name: str = "k", **options: Any) -> Job:
    """A job that may be admitted in the very next statement."""
    return schedule(**{"delay": -timedelta(seconds=1), "concurrency_key": name, **options})


def key_of(job: Job) -> Key:
    return job.tenant_id, job.concurrency_key or ""


def let_in(connection: Connection, *jobs: Job) -> int:
    """Fill the keys of these jobs; in a test's rolled-back transaction nobody is told of a commit."""
    return admit(connection, {key_of(job) for job in jobs})


def admitted(*jobs: Job) -> list[bool]:
    """Of each whether it has a place."""
    ready = set(QueueEntry.objects.filter(parked=None).values_list("job_id", flat=True))
    return [job.id in ready for job in jobs]


def allow(connection: Connection, most: int, name: str = "test.noop") -> None:
    """So many jobs of the type at once with one key."""
    declare(connection, [JobType(name, print, name, None, None, None, False, False, concurrency=most)])
