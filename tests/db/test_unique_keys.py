from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries, Settings

from dispatch.janitor import Janitor
from jobs import clock
from jobs.conf import conf
from jobs.errors import LockTimeout
from jobs.models import Job, UniqueKey
from jobs.newjob import NewJob
from jobs.partitions import bounds, day_of
from jobs.results import Completed
from tests.db.verbs import SITUATIONS, job_so
from tests.factories import claim, failed, finish, own_connection, process, schedule, server_time

Connection = psycopg.Connection[Any]
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def expire(here: Connection) -> None:
    here.execute("UPDATE jobs_uniquekey SET expires_at = clock_timestamp() WHERE expires_at IS NOT NULL")


def test_the_second_call_gets_the_first_job(here: Connection) -> None:
    first = schedule("test.echo", {"value": 1}, unique_key="k", delay=HOUR)
    second = schedule("test.echo", {"value": 2}, unique_key="k")
    assert (second, second.was_created, first.was_created) == (first, False, True)
    assert second.payload == {"value": 1}
    assert second.due_at == first.due_at
    assert Job.objects.count() == 1


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_key_is_held_until_its_job_has_ended(here: Connection, situation: str) -> None:
    job = job_so(situation, here, unique_key="k")
    ended = situation in ("completed", "failed", "cancelled")
    assert schedule(unique_key="k").was_created is ended
    assert (UniqueKey.objects.get().job_id == job.id) is not ended


def test_keys_of_other_tenants_and_types_are_others(here: Connection) -> None:
    jobs = [
        schedule(unique_key="k"), schedule("test.echo", unique_key="k"),
        schedule(unique_key="k", tenant="t"), schedule(unique_key="K"),
    ]  # fmt: skip
    assert all(job.was_created for job in jobs)
    assert len({job.id for job in jobs}) == 4


def test_a_key_for_a_period_is_held_beyond_the_end_of_its_job(here: Connection) -> None:
    job = schedule(unique_key="k", unique_for=HOUR)
    finish(here, claim(here, job, process(here)), Completed())
    again = schedule(unique_key="k", unique_for=HOUR)
    assert (again.id, again.was_created) == (job.id, False)


def test_after_the_period_the_next_caller_takes_the_key_over(here: Connection) -> None:
    job = schedule(unique_key="k", unique_for=HOUR)
    expire(here)
    again = schedule(unique_key="k", unique_for=2 * HOUR)
    assert again.was_created
    row = UniqueKey.objects.get()
    assert row.job_id == again.id != job.id
    assert row.expires_at is not None
    assert HOUR < row.expires_at - server_time(here) <= 2 * HOUR


def test_the_period_may_end_while_its_job_still_waits(here: Connection) -> None:
    job = schedule(unique_key="k", unique_for=HOUR, delay=3 * HOUR)
    expire(here)
    again = schedule(unique_key="k")
    assert again.was_created
    job.cancel()
    assert UniqueKey.objects.get().job_id == again.id, "an old holder frees nothing of its successor"


def test_an_expired_key_is_swept_by_the_janitor_and_a_held_one_is_not(here: Connection) -> None:
    schedule(unique_key="period", unique_for=HOUR)
    expire(here)
    kept = [schedule(unique_key="until done"), schedule(unique_key="longer", unique_for=HOUR)]
    deleted = Janitor()._delete(
        here,
        "DELETE FROM jobs_uniquekey WHERE id IN "
        "(SELECT id FROM jobs_uniquekey WHERE expires_at <= %s LIMIT %s FOR UPDATE SKIP LOCKED)",
        clock.now() + timedelta(seconds=1),
    )
    assert deleted == 1
    assert {row.job_id for row in UniqueKey.objects.all()} == {job.id for job in kept}


def test_a_failed_job_that_is_retried_holds_its_key_until_it_ends_again(here: Connection) -> None:
    job = job_so("failed", here, unique_key="k")
    job.retry()
    assert schedule(unique_key="k").id == job.id
    finish(here, claim(here, job, process(here)), failed(final=True))
    assert schedule(unique_key="k").was_created


@pytest.mark.parametrize("days", [1, 7, 30])
def test_uq_01_who_holds_a_key_for_a_period_is_kept_for_as_long(here: Connection, days: int) -> None:
    """Whatever due time was asked for: when its day is dropped, the key is free."""
    for due_at in (datetime(1970, 1, 1, tzinfo=UTC), clock.now() - 29 * DAY, clock.now()):
        job = schedule(unique_key=f"{due_at}", unique_for=days * DAY, due_at=due_at)
        assert job.due_at <= clock.now() + timedelta(milliseconds=1)
        held_until = UniqueKey.objects.get(job_id=job.pk).expires_at
        assert held_until
        assert bounds(day_of(job.due_at))[1] + conf().retention >= held_until


def vanish(here: Connection, job: Job) -> None:
    """As if its day had been dropped by hand, or under a shorter retention."""
    for table, column in (("job", "id"), ("queueentry", "job_id")):
        here.execute(f"DELETE FROM jobs_{table} WHERE {column} = %s", [job.pk])


@pytest.mark.parametrize("period", [None, HOUR])
def test_uq_01_a_key_whose_job_has_no_row_any_more_is_free(
    here: Connection, period: timedelta | None
) -> None:
    for key in ("one", "many"):
        vanish(here, schedule(unique_key=key, unique_for=period))
    job = schedule(unique_key="one", unique_for=period)
    ((other, was_created),) = Job.objects.schedule_many([NewJob(job_type="test.noop", unique_key="many")])
    assert (job.was_created, was_created) == (True, True)
    assert {row.job_id for row in UniqueKey.objects.all()} == {job.pk, other}


def test_uq_01_a_job_is_retried_whose_key_a_vanished_one_has(here: Connection) -> None:
    job = job_so("failed", here, unique_key="k")
    vanish(here, schedule(unique_key="k"))
    job.retry()
    assert UniqueKey.objects.get().job_id == job.pk
    assert schedule(unique_key="k").id == job.pk


def test_a_held_key_leaves_the_callers_transaction_usable(here: Connection) -> None:
    schedule(unique_key="k")
    with transaction.atomic():
        assert not schedule(unique_key="k").was_created
        assert schedule().was_created
    assert Job.objects.count() == 2


def test_a_held_key_costs_no_more_than_four_statements(
    here: Connection, steady_clock: None, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    schedule(unique_key="k")
    with django_assert_num_queries(4):
        schedule(unique_key="k")


@pytest.mark.django_db(transaction=True)
def test_a_wait_for_a_concurrent_caller_can_be_bounded_and_poisons_nothing(settings: Settings) -> None:
    tenant = schedule().tenant_id
    settings.SCHEDULER = {**settings.SCHEDULER, "schedule_lock_timeout": 0.05}
    with own_connection() as other, other.transaction(force_rollback=True):
        other.execute(
            "INSERT INTO jobs_uniquekey (tenant_id, job_type, key, job_id) "
            "VALUES (%s, 'test.noop', 'k', gen_random_uuid())",
            [tenant],
        )
        with transaction.atomic():
            with pytest.raises(LockTimeout, match="schedule_lock_timeout"):
                schedule(unique_key="k")
            assert schedule().was_created
    assert Job.objects.count() == 2
    assert schedule(unique_key="k").was_created
