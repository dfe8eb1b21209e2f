from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction
from pytest_django import Settings

from jobs import clock
from jobs.errors import InvalidJob, InvalidPayload, UnknownJobType
from jobs.ids import new_id
from jobs.models import Job, QueueEntry, Timer
from tests.factories import schedule

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("job_type", {"job_type": "nobody.knows"}),
    ("job_type", {"job_type": 5}),
    ("job_type", {"job_type": ""}),
    ("due_at", {"due_at": datetime(2030, 1, 1)}),  # noqa: DTZ001
    ("due_at", {"due_at": "2030-01-01T00:00Z"}),
    ("due_at", {"due_at": float("inf")}),
    *(("due_at", {"due_at": value}) for value in ("", 0, False)),  # not: now
    ("due_at", {"due_at": datetime.max.replace(tzinfo=UTC)}),
    ("due_at", {"delay": 6 * 365 * DAY}),
    ("delay", {"delay": timedelta.max}),
    ("delay", {"delay": timedelta.min}),
    ("delay", {"delay": 5}),
    ("delay", {"delay": DAY, "due_at": datetime(2030, 1, 1, tzinfo=UTC)}),
    *(("priority", {"priority": value}) for value in (-101, 101, True, "1", 1.0, None)),
    *(("max_attempts", {"max_attempts": value}) for value in (0, -1, 10_001, True, "3", 2.0)),
    *(("queue", {"queue": value}) for value in ("", " q", "q\n", "a\0b", "x" * 101, 5, 0)),
    *(("group", {"group": value}) for value in ("", "g ", "x" * 101, 5)),
    *(("tenant", {"tenant": value}) for value in ("", " t", "\ud800", "x" * 101, None)),
    *(("unique_key", {"unique_key": value}) for value in ("", "k\0", "x" * 201, 5)),
    *(("concurrency_key", {"concurrency_key": value}) for value in ("", "k\0", " k", "x" * 201, 5)),
    ("unique_for", {"unique_for": DAY}),
    *(
        ("unique_for", {"unique_key": "k", "unique_for": value})
        for value in (timedelta(), -DAY, 31 * DAY, 60)
    ),
]


@pytest.mark.parametrize(("field", "options"), WRONG, ids=lambda value: str(value)[:60])
def test_what_cannot_be_scheduled_is_refused_by_name_and_leaves_the_transaction_usable(
    field: str, options: dict[str, Any]
) -> None:
    with transaction.atomic():
        with pytest.raises(InvalidJob) as caught:
            schedule(**options)
        assert caught.value.field == field
        assert str(caught.value).startswith(f"{field}: ")
        assert schedule().was_created
    assert Job.objects.count() == QueueEntry.objects.count() == 1


def test_an_unknown_type_says_how_to_make_it_known() -> None:
    with pytest.raises(UnknownJobType, match=r"'nobody\.knows'.*external_types"):
        schedule("nobody.knows")


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"a": {"b": [1, float("nan")]}}, "payload.a.b[1]"),
        ({"a": "x\0"}, "payload.a"),
        ({"a": "\ud800"}, "payload.a"),
        ({"a": datetime(2030, 1, 1, tzinfo=UTC)}, "payload.a"),
        ({1: "a"}, "payload"),
        ([1], "payload"),
        ({"a": "x" * 300_000}, "payload"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_payload_that_cannot_be_stored_is_refused_by_its_path(payload: Any, field: str) -> None:
    with pytest.raises(InvalidPayload) as caught:
        schedule("test.echo", payload)
    assert caught.value.field == field
    assert not Job.objects.exists()
    assert schedule().was_created


def test_a_field_that_its_dataclass_does_not_know_is_refused_by_name() -> None:
    with pytest.raises(InvalidPayload, match="colour"):
        schedule("test.letter", {"to": "anna", "lines": [], "colour": "red"})


def test_the_horizon_is_a_setting(settings: Settings) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "max_horizon": 3600}
    assert schedule(delay=timedelta(minutes=59)).was_created
    with pytest.raises(InvalidJob, match="max_horizon"):
        schedule(delay=timedelta(minutes=61))


def _another(job: Job) -> Job:
    """One that would be in no place, and so never run."""
    values = {"tenant_id": job.tenant_id, "job_type": "test.noop", "queue": "q", "max_attempts": 1}
    return Job(id=new_id(job.due_at), due_at=job.due_at, **values)


async def _abulk_create(job: Job) -> None:
    await Job.objects.abulk_create([_another(job)])


_BIRTHS_AND_CHANGES: dict[str, Callable[[Job], Any]] = {
    "save": lambda job: job.save(),
    "delete": lambda job: job.delete(),
    "create": lambda job: Job.objects.create(id=job.id),
    "get_or_create": lambda job: Job.objects.get_or_create(job_type="other"),
    "bulk_create": lambda job: Job.objects.bulk_create([job]),
    "bulk_create of all": lambda job: Job.objects.all().bulk_create([_another(job)]),
    "abulk_create": lambda job: async_to_sync(_abulk_create)(job),
    "bulk_update": lambda job: Job.objects.bulk_update([job], ["priority"]),
    "update": lambda job: Job.objects.filter(pk=job.pk).update(priority=3),
    "update of all": lambda job: Job.objects.update(priority=3),
    "delete of many": lambda job: Job.objects.filter(pk=job.pk).delete(),
    "new and save": lambda job: Job(id=job.id, due_at=job.due_at).save(),
}


@pytest.mark.parametrize("how", list(_BIRTHS_AND_CHANGES))
def test_a_job_is_born_by_schedule_alone_and_never_changed(how: str) -> None:
    job = schedule(delay=timedelta(hours=1))
    before = list(Job.objects.values())
    with pytest.raises(TypeError, match=r"schedule|immutable|never deleted"):
        _BIRTHS_AND_CHANGES[how](job)
    assert list(Job.objects.values()) == before
    assert Timer.objects.count() == 1


def test_the_clock_is_the_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    here = clock.now()
    monkeypatch.setattr("time.time", lambda: 0.0)
    assert abs(schedule().due_at - here) < timedelta(minutes=1)
