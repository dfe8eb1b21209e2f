"""A router that reads from a replica: what changes something never asks it, for it may be behind, and cannot be written."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from pytest_django import Settings

from jobs import clock
from jobs.models import CronDefinition, CronRun, CronTick, Job, QueueEntry
from jobs.newjob import NewJob
from jobs.registry import registry
from tests.db.test_ticker import define, far
from tests.factories import schedule

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)
REPLICA = "replica"
"""An alias that does not exist: whoever asks it fails."""


class Reader:
    def db_for_read(self, model: Any, **hints: Any) -> str:
        return REPLICA

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return "default"


@pytest.fixture(autouse=True)
def _reads_elsewhere(here: Connection, settings: Settings) -> None:
    settings.DATABASE_ROUTERS = [f"{__name__}.Reader"]


def read(row: Any) -> Any:
    """As if it had been read from the replica."""
    row._state.db = REPLICA
    return row


def test_jobs_are_scheduled_where_they_are_written() -> None:
    first, again = schedule(unique_key="k"), schedule(unique_key="k")
    assert (again, again.was_created, again._state.db) == (first, False, "default")
    ((other, was_created),) = Job.objects.schedule_many([NewJob(job_type="test.noop", unique_key="k")])
    assert (other, was_created) == (first.pk, False)
    known = registry.get("test.noop")
    assert known
    assert known.delay()._state.db == "default"
    assert first.state == "queued"


def test_a_verb_finds_its_jobs_where_it_changes_them() -> None:
    schedule(group="g", delay=HOUR)
    assert Job.objects.filter(group="g").reschedule(clock.now() + 2 * HOUR).changed == 1
    assert Job.objects.filter(group="g").cancel().changed == 1
    assert Job.objects.filter(group="g").retry().changed == 1


def test_a_job_that_was_read_from_a_replica_is_changed_where_it_is_written() -> None:
    job = read(schedule(delay=HOUR))
    assert job.reschedule(clock.now() + 2 * HOUR).changed == 1
    assert job.cancel().changed == 1
    assert job.retry().changed == 1


def test_a_definition_that_was_read_from_a_replica_is_changed_where_it_is_written() -> None:
    definition = read(define(expression=far(), overlap="buffer_all"))
    assert definition.pause("why")
    assert read(definition).resume()
    job_id = read(definition).run_now()
    assert QueueEntry.objects.using("default").get().job_id == job_id
    assert CronRun.objects.using("default").get().job_id == job_id
    CronDefinition.objects.using("default").update(expression="0 * * * *")
    definition.refresh_from_db(using="default")
    now = clock.now()
    assert read(definition).backfill(now - 2 * HOUR, now).missing == 2
    assert CronTick.objects.using("default").count() >= 3
    definition.note = "other"
    read(definition).save()
    CronDefinition.objects.bulk_create([CronDefinition(
        name="another", tenant_id=definition.tenant_id, expression=far(), job_type="test.noop",
    )])  # fmt: skip
