"""The id of a job carries its due time: the database insists on it, and every way of looking one up prunes by it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.contrib.admin.sites import AdminSite
from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from jobs.ids import ceil_ms, derived_id, due_of, new_id
from jobs.models import Job, Outcome, QueueEntry, Timer
from tests.factories import schedule

Connection = psycopg.Connection[Any]
INSERT = (
    "INSERT INTO jobs_job (id, due_at, tenant_id, job_type, queue, priority, payload, max_attempts) "
    "VALUES (%s, %s, 1, 't', 'q', 0, '{}', 1)"
)


def due() -> datetime:
    return ceil_ms(datetime.now(UTC))


@pytest.mark.parametrize(
    ("job_id", "due_at"),
    [
        (new_id(due()), due() + timedelta(milliseconds=1)),
        (new_id(due()), due() - timedelta(hours=1)),
        (uuid4(), due()),
        (UUID(int=0), due()),
    ],
)
def test_an_id_that_does_not_carry_the_due_time_is_refused(
    here: Connection, job_id: UUID, due_at: datetime
) -> None:
    with pytest.raises(psycopg.errors.CheckViolation), here.transaction():
        here.execute(INSERT, [job_id, due_at])


@pytest.mark.parametrize("due_at", ["infinity", "-infinity"])
def test_infinity_is_refused(here: Connection, due_at: str) -> None:
    with pytest.raises(psycopg.errors.CheckViolation), here.transaction():
        here.execute(INSERT, [new_id(due()), due_at])


def test_the_id_that_carries_it_is_taken_once(here: Connection) -> None:
    moment = due()
    for job_id in (new_id(moment), derived_id(moment, "a")):
        here.execute(INSERT, [job_id, moment])
        with pytest.raises(psycopg.errors.UniqueViolation), here.transaction():
            here.execute(INSERT, [job_id, moment])


# Two jobs are due on two different days; `days` of them are named.
LOOKUPS: dict[str, tuple[int, Callable[[Job, Job], Any]]] = {
    "get": (1, lambda a, b: Job.objects.get(pk=a.pk)),
    "get by text": (1, lambda a, b: Job.objects.get(pk=str(a.pk))),
    "get by id": (1, lambda a, b: Job.objects.get(id=a.id)),
    "filter": (1, lambda a, b: list(Job.objects.filter(pk=a.pk))),
    "filter in": (2, lambda a, b: list(Job.objects.filter(pk__in=[a.pk, b.pk]))),
    "in_bulk": (2, lambda a, b: Job.objects.in_bulk([a.pk, b.pk])),
    "or": (2, lambda a, b: list(Job.objects.filter(Q(pk=a.pk) | Q(pk=b.pk)))),
    "and": (1, lambda a, b: list(Job.objects.filter(pk=a.pk, job_type="test.noop"))),
    "exists": (1, lambda a, b: Job.objects.filter(pk=a.pk).exists()),
    "count": (1, lambda a, b: Job.objects.filter(pk__in=[a.pk]).count()),
    "contains": (1, lambda a, b: Job.objects.filter().contains(a)),
    "refresh": (1, lambda a, b: a.refresh_from_db()),
    "values_list": (1, lambda a, b: list(Job.objects.filter(pk=a.pk).values_list("payload"))),
    "select_related": (1, lambda a, b: list(Job.objects.select_related("tenant").filter(pk=a.pk))),
    "timer": (1, lambda a, b: Timer.objects.get(job_id=a.pk)),
    "timer of": (1, lambda a, b: a.timer),
    "outcomes": (2, lambda a, b: list(Outcome.objects.filter(job_id__in=[a.pk, b.pk]))),
    "job of": (1, lambda a, b: Timer.objects.get(job_id=a.pk).job),
}


@pytest.mark.parametrize("how", list(LOOKUPS))
def test_a_lookup_visits_exactly_the_days_of_its_ids(here: Connection, how: str) -> None:
    jobs = schedule(delay=timedelta(days=1)), schedule(delay=timedelta(days=3))
    days, look = LOOKUPS[how]
    with CaptureQueriesContext(connection) as sent:
        assert look(*jobs) is not False
    assert sent.captured_queries
    for query in sent.captured_queries:
        leaves = _leaves(here, query["sql"])
        assert len(leaves) == days, query["sql"]


@pytest.mark.parametrize("how", [lambda q: ~q, lambda q: ~~~q], ids=["not", "not not not"])
def test_leaving_one_id_out_finds_all_others(here: Connection, how: Callable[[Q], Q]) -> None:
    left, other = schedule(delay=timedelta(days=1)), schedule(delay=timedelta(days=1))
    assert list(Job.objects.filter(how(Q(pk=left.pk)))) == [other]
    assert list(Job.objects.filter(how(Q(pk__in=[left.pk])))) == [other]
    assert list(Job.objects.exclude(pk=left.pk)) == [other]
    assert set(Job.objects.exclude(pk=new_id(left.due_at))) == {left, other}


IMPOSSIBLE = ["ffffffff-ffff-7fff-bfff-ffffffffffff", "e7ccecb1-c06e-4cd7-afac-b3d43a905810", UUID(int=0)]


@pytest.mark.parametrize("job_id", IMPOSSIBLE)
def test_an_id_that_no_job_can_have_finds_nothing(here: Connection, job_id: Any) -> None:
    job = schedule()
    assert not Job.objects.filter(pk=job_id).exists()
    assert list(Job.objects.filter(pk__in=[job_id, job.pk])) == [job]
    assert list(Job.objects.exclude(pk=job_id)) == [job]
    assert list(Job.objects.filter(~Q(pk__in=[job_id]))) == [job]
    assert list(Job.objects.filter(Q(pk=job_id) | Q(pk=job.pk))) == [job]
    with pytest.raises(Job.DoesNotExist):
        Job.objects.get(pk=job_id)
    assert not QueueEntry.objects.filter(job_id=job_id).exists()


@pytest.mark.parametrize("text", ["", "x", "1", "_5F"])
def test_text_that_is_no_id_is_a_validation_error_which_the_admin_turns_into_not_found(
    here: Connection, text: str
) -> None:
    with pytest.raises(ValidationError):
        Job.objects.filter(pk=unquote(text)).exists()
    from django.contrib.admin import ModelAdmin

    assert ModelAdmin(Job, AdminSite()).get_object(None, text) is None  # type: ignore[arg-type]


def test_none_finds_nothing_in_a_list(here: Connection) -> None:
    job = schedule()
    assert list(Job.objects.filter(pk__in=[None, job.pk])) == [job]
    assert not Job.objects.filter(pk__in=[]).exists()


def test_a_subquery_is_left_as_it_is(here: Connection) -> None:
    job = schedule()
    entries = QueueEntry.objects.filter(queue=job.queue).values("job_id")
    assert Job.objects.filter(pk__in=entries).get() == job


def test_the_due_time_of_an_id_is_the_one_it_was_made_of(here: Connection) -> None:
    job = schedule(delay=timedelta(hours=1))
    assert due_of(job.id) == due_of(str(job.id)) == job.due_at


def test_a_second_job_with_the_same_id_is_an_error_of_the_database(here: Connection) -> None:
    job = schedule()
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(INSERT, [job.id, job.due_at])


def _leaves(here: Connection, statement: str) -> set[str]:
    """The days that a statement, as it was sent, would visit."""
    ((plan,),) = here.execute("EXPLAIN (FORMAT JSON) " + statement).fetchall()
    text = plan if isinstance(plan, str) else json.dumps(plan)
    return {word.split("__")[1] for word in text.split('"') if word.startswith("jobs_") and "__" in word and "idx" not in word
            and "pkey" not in word}  # fmt: skip
