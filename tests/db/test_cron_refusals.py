"""Every invalid vector is refused with field and reason by create, bulk_create, full_clean and the admin; and so is
whatever could never fire."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from jobs import clock
from jobs.console.cron_form import CronForm
from jobs.errors import CronError, InvalidJob
from jobs.models import CronDefinition
from jobs.tenants import tenant_ids
from tests.unit.test_cron_vectors import INVALID

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
TEXTS = [row["expression"].encode("ascii").decode("unicode_escape") for row in INVALID]
FIELDS = {"expression", "minute", "hour", "day of month", "month", "day of week"}


def new(**options: Any) -> CronDefinition:
    values = {
        "name": "c",
        "tenant_id": tenant_ids(["t"])["t"],
        "expression": "0 1 * * *",
        "job_type": "test.noop",
    }
    return CronDefinition(**values | options)


def create(definition: CronDefinition) -> None:
    definition.save(force_insert=True)


def save(definition: CronDefinition) -> None:
    definition.save()


def bulk_create(definition: CronDefinition) -> None:
    CronDefinition.objects.bulk_create([new(name="fine"), definition])


@pytest.mark.parametrize("write", [create, bulk_create])
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_an_invalid_vector_is_refused_by_the_api(text: str, write: Callable[[CronDefinition], None]) -> None:
    with pytest.raises(CronError) as refusal:
        write(new(expression=text))
    assert refusal.value.field in FIELDS
    assert refusal.value.message
    assert not CronDefinition.objects.exists()


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_an_invalid_vector_is_refused_by_full_clean_beside_its_field(text: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        new(expression=text).full_clean()
    assert "expression" in refusal.value.message_dict


def test_every_invalid_vector_is_refused_by_the_form_of_the_admin() -> None:
    values = {
        "name": "c", "tenant": tenant_ids(["t"])["t"], "timezone": "UTC", "dst": "cron", "job_type": "test.noop",
        "payload": "{}", "priority": "0", "misfire": "run_once", "misfire_grace": "60", "catchup_window": "86400",
        "catchup_limit": "100", "overlap": "allow_all", "jitter": "0", "spread": "0", "revision": "1",
    }  # fmt: skip
    wrong = {text: list(CronForm({**values, "expression": text}).errors) for text in TEXTS}
    accepted = {text: fields for text, fields in wrong.items() if fields != ["expression"]}
    # A form strips white space around a value, so what only had too much of it is fine there.
    assert {text: fields for text, fields in accepted.items() if text == text.strip() or fields} == {}
    assert len(accepted) <= 6


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("expression", {"expression": ""}),
        ("expression", {"expression": "* * * * *" + " " * 504}),
        ("expression", {"expression": 5}),
        ("misfire_grace", {"misfire_grace": -HOUR}),
        ("misfire_grace", {"misfire_grace": timedelta.max}),
        ("catchup_window", {"catchup_window": -HOUR}),
        ("catchup_window", {"catchup_window": timedelta.max}),
        ("tz", {"timezone": "Mars/Base"}),
        ("tz", {"timezone": "localtime"}),
        ("dst", {"dst": "sometimes"}),
        ("every", {"every": HOUR}),
        ("every", {"expression": "", "every": timedelta()}),
        ("every", {"expression": "", "every": -HOUR}),
        ("every", {"expression": "", "every": timedelta(days=4000)}),
        ("run_at", {"run_at": datetime(2100, 1, 1).astimezone()}),
        ("run_at", {"expression": "", "run_at": datetime(2001, 1, 1).astimezone()}),
        ("run_at", {"expression": "", "run_at": datetime(2100, 1, 1)}),  # noqa: DTZ001
        ("start_at", {"start_at": datetime(2100, 1, 1)}),  # noqa: DTZ001
        (
            "end_at",
            {"start_at": datetime(2100, 1, 1).astimezone(), "end_at": datetime(2099, 1, 1).astimezone()},
        ),
        ("end_at", {"end_at": datetime(2001, 1, 1).astimezone()}),
        ("expression", {"expression": "30 2 * 3 SUNL", "timezone": "Europe/Berlin", "dst": "skip"}),
        ("max_runs", {"max_runs": 0}),
        ("jitter", {"jitter": timedelta(days=2)}),
        ("spread", {"spread": -HOUR}),
        ("spread", {"spread": None}),
        ("jitter", {"jitter": 5}),
        ("misfire_grace", {"misfire_grace": 60}),
        ("every", {"expression": "", "every": 300}),
        ("max_runs", {"max_runs": 2**31}),
        ("max_runs", {"max_runs": "3"}),
        ("catchup_limit", {"catchup_limit": 0}),
        ("catchup_limit", {"catchup_limit": 1001}),
        ("catchup_limit", {"catchup_limit": None}),
        ("overlap", {"overlap": "forbid"}),
        ("overlap", {"overlap": None}),
        ("misfire", {"misfire": "run_twice"}),
        ("note", {"note": "a\0b"}),
        ("note", {"note": "x" * 501}),
    ],
)
def test_what_could_never_fire_as_asked_is_refused(field: str, options: dict[str, Any]) -> None:
    with pytest.raises(CronError) as refusal:
        create(new(**options))
    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("job_type", {"job_type": "no.such"}),
        ("payload", {"payload": [1]}),
        ("payload.a", {"payload": {"a": "\0"}}),
        ("priority", {"priority": 101}),
        ("max_attempts", {"max_attempts": 0}),
    ],
)
def test_a_job_that_could_not_be_scheduled_is_refused(field: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidJob) as refusal:
        create(new(**options))
    assert refusal.value.field == field


def test_an_edit_is_checked_too() -> None:
    definition = new()
    definition.save()
    definition.expression = "61 * * * *"
    with pytest.raises(CronError, match="minute"):
        definition.save()
    definition.refresh_from_db()
    definition.job_type = "of.another.deployment"  # but not whether this process knows the type
    definition.save()


@pytest.mark.parametrize("write", [save, CronDefinition.full_clean])
def test_an_edit_to_a_moment_that_has_passed_is_refused(write: Callable[[CronDefinition], None]) -> None:
    """It would never run. What has run at its moment can still be edited."""
    moment = clock.now() + HOUR
    definition = new(expression="", run_at=moment)
    definition.save()
    definition.run_at = moment - 2 * HOUR
    with pytest.raises((CronError, ValidationError), match="is not after"):
        write(definition)
    CronDefinition.objects.filter(pk=definition.pk).update(run_at=definition.run_at)
    definition.note = "fired"
    write(definition)
    definition.run_at = moment - 3 * HOUR
    definition.enabled = False
    write(definition)


@pytest.mark.parametrize(
    "change",
    [
        {"expression": ""},
        {"every": HOUR},
        {"run_at": datetime(2100, 1, 1).astimezone()},
        {"jitter": -HOUR},
        {"catchup_limit": 1001},
    ],
)
def test_the_database_refuses_what_no_check_has_seen(change: dict[str, Any]) -> None:
    new().save()
    with pytest.raises(IntegrityError), transaction.atomic():
        CronDefinition.objects.update(**change)


def test_tens_of_thousands_are_checked_quickly_because_equal_rules_are_read_once() -> None:
    clock.now()
    made = CronDefinition.objects.bulk_create(
        new(name=f"c{n}", expression=f"{n % 60} {n % 24} * * *", spread=HOUR) for n in range(2000)
    )
    assert len(made) == CronDefinition.objects.count() == 2000
