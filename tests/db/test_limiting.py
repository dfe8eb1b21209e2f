"""Limits are set by code, form and command under the same rules."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.forms import modelform_factory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import clock
from jobs.errors import InvalidValue, UnknownTenant
from jobs.limiting import limit, warning_of
from jobs.models import Queue, Tenant, TenantQueueLimit
from tests.searching import examples

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Tenant:
    return Tenant.objects.get_or_create(slug="acme")[0]


def test_a_tenants_limits_are_set_and_what_was_before_is_told(acme: Tenant) -> None:
    row, before = limit(
        {"max_running": 5, "weight": 3, "rate": 10, "rate_per": "minute", "burst": 20}, tenant="acme"
    )
    acme.refresh_from_db()
    assert row == acme
    assert (acme.max_running, acme.weight, acme.rate, acme.rate_per, acme.burst) == (5, 3, 10, "minute", 20)
    assert before == {"max_running": None, "weight": 1, "rate": None, "rate_per": "second", "burst": None}
    limit({"max_running": None}, tenant="acme")
    acme.refresh_from_db()
    assert acme.max_running is None


def test_a_queue_needs_no_row_to_be_limited() -> None:
    limit({"max_running": 2}, queue="q")
    limit({"noisy_share": 0.5}, queue="q")
    row = Queue.objects.get()
    assert (row.name, row.max_running, row.noisy_share) == ("q", 2, 0.5)


def test_a_tenant_in_a_queue_has_a_limit_or_none(acme: Tenant) -> None:
    limit({"max_running": 2}, tenant="acme", queue="q")
    limit({"max_running": 3}, tenant="acme", queue="q")
    assert TenantQueueLimit.objects.get().max_running == 3
    limit({"max_running": None}, tenant="acme", queue="q")
    limit({"max_running": None}, tenant="acme", queue="q")
    assert not TenantQueueLimit.objects.exists()


def test_a_limit_of_zero_is_warned_of(acme: Tenant) -> None:
    row, _ = limit({"max_running": 0, "rate": 0}, tenant="acme")
    assert warning_of(row) == (
        "tenant acme: max running and rate is 0, so none of its jobs starts until that is changed."
    )
    row, _ = limit({"max_running": 1, "rate": None}, tenant="acme")
    assert warning_of(row) is None


NUMBERS = ["max_running", "weight", "rate", "burst", "temporary_max_running"]
WRONG = [-1, 1_000_001, 10**30, True, 1.5, float("nan"), float("inf"), "5", "x", b"1", [1]]


@pytest.mark.parametrize("field", NUMBERS)
@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_what_is_no_whole_number_in_reason_is_refused(acme: Tenant, field: str, value: Any) -> None:
    with pytest.raises(InvalidValue, match=f"^{field}: .* is no whole number from 0 to 1,000,000"):
        limit({field: value}, tenant="acme")


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("weight", {"weight": 0}),
        ("weight", {"weight": 1001}),
        ("weight", {"weight": None}),
        ("burst", {"burst": 5}),
        ("burst", {"rate": 5, "burst": 0}),
        ("rate_per", {"rate": 5, "rate_per": "day"}),
        ("temporary_until", {"temporary_max_running": 5}),
        ("noisy_exempt", {"noisy_exempt": "yes"}),
        ("noisy_share", {"noisy_share": 0.5}),
        ("slug", {"slug": "x"}),
        ("nonsense", {"nonsense": 1}),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(
    acme: Tenant, field: str, changes: dict[str, Any]
) -> None:
    with pytest.raises(InvalidValue, match=f"^{field}: "):
        limit(changes, tenant="acme")
    limit({"temporary_max_running": 3, "temporary_until": clock.now() + timedelta(hours=1)}, tenant="acme")


def test_who_is_limited_is_named_and_exists() -> None:
    with pytest.raises(UnknownTenant):
        limit({"max_running": 1}, tenant="nobody")
    with pytest.raises(InvalidValue, match="name a tenant, a queue, or both"):
        limit({"max_running": 1})
    with pytest.raises(InvalidValue, match=r"^queue: "):
        limit({"max_running": 1}, queue=" ")
    with pytest.raises(InvalidValue, match=r"^tenant: "):
        limit({"max_running": 1}, tenant=" ")
    assert not Queue.objects.exists()


Form = modelform_factory(Tenant, fields=["max_running", "weight", "rate", "rate_per", "burst"])
VALUES = st.one_of(st.none(), st.integers(-2, 1_000_002), st.integers(-(2**70), 2**70))


@settings(
    max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(field=st.sampled_from(["max_running", "weight", "rate"]), value=VALUES)
def test_code_form_and_command_accept_the_same(acme: Tenant, field: str, value: int | None) -> None:
    base = {"max_running": None, "weight": 1, "rate": None, "burst": None}
    Tenant.objects.filter(pk=acme.pk).update(**base)
    form = Form({**{name: "" if each is None else each for name, each in base.items()}, "rate_per": "second",
                 field: "" if value is None else str(value)}, instance=Tenant.objects.get(pk=acme.pk))  # fmt: skip
    accepted = form.is_valid()

    def by_code() -> None:
        limit({field: value}, tenant="acme")

    def by_command() -> None:
        call_command(
            "jobs", "limits", "--tenant=acme", f"--{field.replace('_', '-')}={'none' if value is None else value}",
            stdout=StringIO(), stderr=StringIO(),
        )  # fmt: skip

    for act, error in ((by_code, InvalidValue), (by_command, CommandError)):
        Tenant.objects.filter(pk=acme.pk).update(**base)
        if accepted:
            act()
            assert getattr(Tenant.objects.get(pk=acme.pk), field) == value
        else:
            with pytest.raises(error, match=field):
                act()
            assert getattr(Tenant.objects.get(pk=acme.pk), field) == base[field]
