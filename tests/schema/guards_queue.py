"""What each guard of parking prevents: a small check that fails without it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg

from jobs.leases import park, unpark
from tests.factories import process, schedule
from tests.schema.guards_claim import two_due

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)


def what_is_not_due_is_not_parked(here: Connection) -> None:
    schedule(delay=timedelta(seconds=4))
    assert not park(here, "test.noop")


def what_runs_is_not_parked(here: Connection) -> None:
    two_due(here, lease_token=uuid4(), process_id=process(here))
    here.execute("UPDATE jobs_process SET types = '{}'")
    assert park(here, "test.noop").total() == 1


def the_dead_know_no_types(here: Connection) -> None:
    two_due(here)
    process(here)
    here.execute("UPDATE jobs_process SET lease_expires_at = clock_timestamp()")
    assert park(here, "test.noop").total() == 2


def another_queue_is_not_parked(here: Connection) -> None:
    two_due(here)
    assert not park(here, "other")


def what_the_living_know_is_not_parked(here: Connection) -> None:
    two_due(here)
    process(here)
    assert not park(here, "test.noop")


def what_waits_for_another_reason_is_not_unparked(here: Connection) -> None:
    two_due(here, parked="hold")
    assert unpark(here, ["test.noop"]) == 0


def another_type_is_not_unparked(here: Connection) -> None:
    two_due(here, parked="type")
    assert unpark(here, ["test.echo"]) == 0
