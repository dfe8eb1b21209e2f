from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.db import transaction
from pytest_django import DjangoAssertNumQueries, Settings

from jobs import clock
from jobs.ids import due_of
from jobs.models import Job, QueueEntry, Tenant, Timer
from jobs.partitions import bounds, day_of
from jobs.states import JobState
from tests.factories import own_connection, schedule
from tests.handlers.tasks import Letter, echo, letter

pytestmark = pytest.mark.django_db
Connection = psycopg.Connection[Any]


def test_what_is_due_now_goes_straight_into_its_queue() -> None:
    job = schedule()
    entry = QueueEntry.objects.get(job_id=job.id)
    assert not Timer.objects.exists()
    assert entry.run_at >= job.due_at
    for name in ("due_at", "tenant_id", "queue", "job_type", "priority", "group", "max_attempts"):
        assert getattr(entry, name) == getattr(job, name)


def test_what_is_due_within_the_look_ahead_waits_in_its_queue() -> None:
    job = schedule(delay=timedelta(seconds=4))
    assert QueueEntry.objects.get(job_id=job.id).run_at == job.due_at
    assert job.state is JobState.SCHEDULED


def test_what_is_due_later_gets_a_timer() -> None:
    job = schedule(delay=timedelta(hours=1), priority=3, group="g", max_attempts=4)
    timer = Timer.objects.get(job_id=job.id)
    assert not QueueEntry.objects.exists()
    for name in ("due_at", "tenant_id", "queue", "job_type", "priority", "group", "max_attempts"):
        assert getattr(timer, name) == getattr(job, name)


@pytest.mark.parametrize("options", [{}, {"delay": timedelta(hours=1)}, {"unique_key": "k"}])
def test_the_returned_job_is_the_row(options: dict[str, Any]) -> None:
    job = schedule("test.echo", {"value": [1, 2.5, None, {"ä": "☃"}]}, priority=-7, group="g", **options)
    row = Job.objects.get(pk=job.pk)
    for field in Job._meta.concrete_fields:
        assert getattr(job, field.attname) == getattr(row, field.attname), field.attname
    assert job.was_created
    assert not job._state.adding
    assert row == job


def test_it_is_rolled_back_with_the_caller() -> None:
    with transaction.atomic():
        schedule()
        schedule(delay=timedelta(hours=1), unique_key="k")
        transaction.set_rollback(True)
    assert not Job.objects.exists()
    assert not QueueEntry.objects.exists()
    assert not Timer.objects.exists()
    assert schedule(unique_key="k").was_created


def test_a_savepoint_that_is_rolled_back_takes_its_job_and_no_other() -> None:
    kept = schedule()
    with transaction.atomic():
        schedule()
        transaction.set_rollback(True)
    assert Job.objects.get() == kept
    assert QueueEntry.objects.get().job_id == kept.id


def test_a_time_is_rounded_up_to_the_millisecond_never_down() -> None:
    due = clock.now().replace(microsecond=123_001) + timedelta(hours=1)
    job = schedule(due_at=due)
    assert job.due_at == due.replace(microsecond=124_000)
    assert due_of(job.id) == job.due_at


def test_a_due_time_of_another_zone_is_the_same_instant() -> None:
    from zoneinfo import ZoneInfo

    due = (clock.now() + timedelta(hours=1)).replace(microsecond=0)
    assert schedule(due_at=due.astimezone(ZoneInfo("Asia/Kathmandu"))).due_at == due


def test_a_time_in_the_long_past_means_now_and_its_row_lands_in_a_day_that_stays(
    settings: Settings,
) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "retention": 3 * 86_400}
    for due in (datetime(1970, 1, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)):
        before = clock.now()
        job = schedule(due_at=due)
        yesterdays = {bounds(day_of(now))[0] - timedelta(days=1) for now in (before, clock.now())}
        assert job.due_at in yesterdays  # of which there are two at midnight
        assert QueueEntry.objects.get(job_id=job.id).run_at > job.due_at
        assert job.state is JobState.QUEUED


def test_a_recent_past_is_kept_as_the_due_time() -> None:
    due = clock.now().replace(microsecond=0) - timedelta(hours=2)
    assert schedule(due_at=due).due_at == due
    assert schedule(delay=-timedelta(hours=2)).due_at < clock.now()


def test_queue_and_attempts_come_from_the_type_unless_given(settings: Settings) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "max_attempts": 9}
    plain, own, given = (
        schedule(),
        schedule("test.raises"),
        schedule("test.raises", queue="q", max_attempts=2),
    )
    assert (plain.queue, plain.max_attempts) == ("test.noop", 9)
    assert (own.queue, own.max_attempts) == ("test.raises", 1)
    assert (given.queue, given.max_attempts) == ("q", 2)


def test_a_type_that_another_code_base_handles_is_declared_in_the_settings(settings: Settings) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "external_types": ["reports.render"]}
    job = schedule("reports.render", {"any": "thing"})
    assert (job.queue, job.job_type) == ("reports.render", "reports.render")


@pytest.mark.parametrize("priority", [-100, 0, 100])
def test_priorities_go_from_minus_100_to_100(priority: int) -> None:
    assert QueueEntry.objects.get(job_id=schedule(priority=priority).id).priority == priority


def test_a_tenant_is_made_on_first_use_and_survives_the_callers_rollback(settings: Settings) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "tenant_max_running": 12}
    slug = f"tenant {uuid4()}"
    with transaction.atomic():
        tenant_id = schedule(tenant=slug).tenant_id
        transaction.set_rollback(True)
    with own_connection() as other:
        row = other.execute(
            "DELETE FROM jobs_tenant WHERE slug = %s RETURNING id, max_running", [slug]
        ).fetchone()
    assert row == (tenant_id, 12)


def test_jobs_of_one_tenant_share_it() -> None:
    assert schedule(tenant="t").tenant_id == schedule(tenant="t").tenant_id != schedule().tenant_id
    assert Tenant.objects.get(slug="t").weight == 1


def test_the_handler_has_a_shorthand() -> None:
    assert Job.objects.get(pk=echo.delay(value=3).pk).payload == {"value": 3}
    sent = letter.schedule(Letter("anna", uuid4(), ["a"]), delay=timedelta(hours=1), tenant="t")
    assert Job.objects.get(pk=sent.pk).payload["to"] == "anna"
    assert Job.objects.get(pk=sent.pk).tenant.slug == "t"


def test_async_code_has_a_twin() -> None:
    job = async_to_sync(Job.objects.aschedule)("test.echo", {"value": 1}, priority=2)
    assert Job.objects.get(pk=job.pk).priority == 2


def test_the_fast_path_is_one_statement(
    steady_clock: None, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    schedule()
    with django_assert_num_queries(1):
        schedule()
    with django_assert_num_queries(1):
        schedule(delay=timedelta(hours=1))
    with django_assert_num_queries(2):
        schedule(unique_key="k")
