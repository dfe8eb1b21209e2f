from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from jobs.errors import InvalidJob, InvalidPayload
from jobs.models import Job, QueueEntry, Timer, UniqueKey
from jobs.newjob import NewJob
from jobs.states import JobState
from tests.factories import schedule

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def new(payload: Any = None, **options: Any) -> NewJob:
    return NewJob(job_type="test.echo", payload=payload, **options)


def test_the_answers_come_in_the_order_of_the_question() -> None:
    jobs = [new({"value": n}, delay=HOUR * (3 - n % 3), tenant=f"t{n % 2}") for n in range(12)]
    answers = Job.objects.schedule_many(jobs)
    assert all(was_created for _, was_created in answers)
    assert [Job.objects.get(pk=job_id).payload["value"] for job_id, _ in answers] == list(range(12))
    assert len({job_id for job_id, _ in answers}) == 12


def test_each_row_is_what_schedule_would_have_written() -> None:
    options: dict[str, Any] = {
        "priority": 4, "group": "g", "max_attempts": 3, "queue": "q", "tenant": "t",
        "unique_key": "k", "unique_for": HOUR,
    }  # fmt: skip
    for delay in (timedelta(), HOUR):
        Place = Timer if delay else QueueEntry  # noqa: N806
        one = schedule("test.echo", {"value": "ä☃"}, delay=delay, **options | {"unique_key": f"k{delay}"})
        ((other_id, _),) = Job.objects.schedule_many([new({"value": "ä☃"}, delay=delay, **options)])
        UniqueKey.objects.all().delete()
        for model, key in ((Job, "id"), (Place, "job_id")):
            rows: list[dict[str, Any]] = [
                dict(model.objects.filter(**{key: job_id}).values().get()) for job_id in (one.id, other_id)
            ]
            for row in rows:
                for varies in ("id", "job_id", "due_at", "run_at", "created_at", "enqueued_at", "unique_key"):
                    row.pop(varies, None)
            assert rows[0] == rows[1]


def test_due_now_goes_into_its_queue_and_due_later_gets_a_timer() -> None:
    answers = Job.objects.schedule_many([new(), new(delay=HOUR), new(delay=timedelta(seconds=3))])
    now, later, soon = (Job.objects.get(pk=job_id) for job_id, _ in answers)
    assert Timer.objects.get().job_id == later.id
    assert {entry.job_id for entry in QueueEntry.objects.all()} == {now.id, soon.id}
    assert QueueEntry.objects.get(job_id=soon.id).run_at == soon.due_at
    assert later.state is JobState.SCHEDULED


def test_a_key_that_is_held_gives_its_holder_and_creates_nothing() -> None:
    holder = Job.objects.schedule("test.echo", unique_key="k")
    answers = Job.objects.schedule_many([new(unique_key="free"), new(unique_key="k"), new()])
    assert [was_created for _, was_created in answers] == [True, False, True]
    assert answers[1][0] == holder.id
    assert Job.objects.count() == QueueEntry.objects.count() == 3


def test_of_two_with_the_same_key_in_one_call_the_first_is_created() -> None:
    keys = ["b", "a", "b", "a", "c"]
    answers = Job.objects.schedule_many([new({"value": n}, unique_key=key) for n, key in enumerate(keys)])
    assert [was_created for _, was_created in answers] == [True, True, False, False, True]
    assert [answers[n][0] for n in (2, 3)] == [answers[n][0] for n in (0, 1)]
    assert sorted(job.payload["value"] for job in Job.objects.all()) == [0, 1, 4]
    assert UniqueKey.objects.count() == 3


def test_the_same_key_of_another_tenant_or_type_is_another_key() -> None:
    jobs = [
        new(unique_key="k"),
        new(unique_key="k", tenant="t"),
        NewJob(job_type="test.noop", unique_key="k"),
    ]
    assert [was_created for _, was_created in Job.objects.schedule_many(jobs)] == [True] * 3


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (new(priority=900), "priority"),
        (new({"a": [float("nan")]}), "payload.a[0]"),
        (NewJob(job_type="nobody.knows"), "job_type"),
        (new(delay=timedelta(days=9999)), "due_at"),
        ({"job_type": "test.echo"}, "job"),
    ],
)
def test_one_wrong_job_refuses_all_by_its_index(wrong: Any, field: str) -> None:
    with transaction.atomic():
        with pytest.raises(InvalidJob) as caught:
            Job.objects.schedule_many([new(unique_key="k"), new(), wrong, new()])
        assert (caught.value.index, caught.value.field) == (2, field)
        assert str(caught.value).startswith(f"jobs[2].{field}: ")
        assert not Job.objects.exists()
        assert schedule("test.echo", unique_key="k").was_created


def test_the_kind_of_the_error_is_kept() -> None:
    with pytest.raises(InvalidPayload, match=r"^jobs\[0\]\.payload\.a: contains NUL"):
        Job.objects.schedule_many([new({"a": "\0"})])


def test_it_is_rolled_back_with_the_caller() -> None:
    with transaction.atomic():
        Job.objects.schedule_many([new(unique_key="k"), new(delay=HOUR)])
        transaction.set_rollback(True)
    for model in (Job, QueueEntry, Timer, UniqueKey):
        assert not model.objects.exists()


def test_five_thousand_over_several_days_are_a_handful_of_statements(
    steady_clock: None,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    jobs = [new({"value": n}, delay=HOUR * (n % 100), priority=n % 5) for n in range(5000)]
    Job.objects.schedule_many(jobs[:1])
    with django_assert_max_num_queries(8):
        answers = Job.objects.schedule_many(iter(jobs))
    assert len({job_id for job_id, was_created in answers if was_created}) == 5000
    assert Job.objects.count() == QueueEntry.objects.count() + Timer.objects.count() == 5001
    assert QueueEntry.objects.count() == 51


def test_nothing_asked_is_nothing_done(
    steady_clock: None, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    schedule()
    with django_assert_num_queries(0):
        assert Job.objects.schedule_many([]) == []


@pytest.mark.parametrize(("delay", "hints"), [(timedelta(), 1), (HOUR, 0)])
def test_workers_get_one_hint_at_most_and_only_for_what_is_due(
    delay: timedelta, hints: int, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks() as callbacks:
        Job.objects.schedule_many([new(delay=delay) for _ in range(50)])
    assert len(callbacks) == hints


def test_async_code_has_a_twin() -> None:
    ((job_id, _),) = async_to_sync(Job.objects.aschedule_many)([new()])
    assert Job.objects.get().pk == job_id
