"""DX-03: what no table takes is refused by name, wherever a time is given; and so are names that cannot be stored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from jobs import clock, holds, limiting
from jobs.errors import CronError, InvalidValue
from jobs.models import CronDefinition, Tenant
from jobs.tenants import tenant_ids
from jobs.triage import mark

pytestmark = pytest.mark.django_db

HALF_A_DAY = timedelta(hours=12)
TIMES: list[Any] = [
    datetime.max.replace(tzinfo=UTC),
    datetime(9999, 12, 31, 12, tzinfo=UTC),
    datetime.max.replace(tzinfo=timezone(-HALF_A_DAY)),
    datetime.min.replace(tzinfo=UTC),
    datetime.min.replace(tzinfo=timezone(HALF_A_DAY)),
    datetime(2030, 1, 1),  # noqa: DTZ001
    date(2030, 1, 1),
    "2030-01-01T00:00Z",
    float("nan"),
]


def define(**options: Any) -> CronDefinition:
    values = {"name": "c", "job_type": "test.noop", "tenant_id": tenant_ids(["t"])["t"]}
    if not options.keys() & {"every", "run_at"}:
        values["expression"] = "* * * * *"
    return CronDefinition.objects.create(**values | options)


GIVEN: dict[str, Callable[[Any], object]] = {
    "until": lambda time: holds.hold("tenant", "t", until=time),
    "a group's until": lambda time: mark("f" * 16, "ignored", until=time),
    "temporary_until": lambda time: limiting.limit({"temporary_until": time}, tenant="t"),
    "run_at": lambda time: define(run_at=time),
    "start_at": lambda time: define(start_at=time),
    "end_at": lambda time: define(end_at=time),
    "anchor_at": lambda time: define(every=timedelta(hours=1), anchor_at=time),
    "start": lambda time: define().backfill(time, clock.now()),
    "end": lambda time: define().backfill(clock.now() - HALF_A_DAY, time),
}


@pytest.mark.parametrize("time", TIMES, ids=repr)
@pytest.mark.parametrize("field", GIVEN)
def test_dx_03_a_time_that_no_table_takes_is_refused_by_name(field: str, time: Any) -> None:
    tenant_ids(["t"])
    with pytest.raises((InvalidValue, CronError)) as refused:
        GIVEN[field](time)
    error: Any = refused.value
    assert error.field == field.split()[-1]


def test_dx_03_a_form_says_so_beside_the_field() -> None:
    with pytest.raises(ValidationError) as refused:
        Tenant(slug="x", temporary_max_running=1, temporary_until=TIMES[0]).full_clean()
    assert list(refused.value.message_dict) == ["temporary_until"]


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "", "x" * 201])
def test_pl_04_a_name_that_cannot_be_stored_is_refused(name: str) -> None:
    tenant_ids(["t"])
    with pytest.raises(CronError, match="name"):
        define(name=name)
    with pytest.raises(InvalidValue, match="queue"):
        limiting.limit({"max_running": 1}, tenant="t", queue=name)
    with pytest.raises(InvalidValue, match="fingerprint"):
        mark(name, "ignored")
    if name.isascii() and name.isprintable():
        return
    with pytest.raises(InvalidValue, match="reason"):
        holds.hold("all", reason=name)


@pytest.mark.parametrize("rate", [0, -1, 1e-300, 1001, float("nan"), float("inf"), 10**400, True, "1", None])
def test_dx_01_a_rate_that_leads_out_of_the_calendar_is_refused(rate: Any) -> None:
    definition, now = define(), clock.now()
    with pytest.raises(CronError, match="rate"):
        definition.backfill(now - timedelta(minutes=5), now, rate=rate)
