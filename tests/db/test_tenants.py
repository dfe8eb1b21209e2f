"""Tenants: what may name one, made on first use, deleted when it has no jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connections, transaction
from pytest_django import Settings

from dispatch.janitor import Janitor
from jobs import clock, tenants
from jobs.clock import boottime
from jobs.errors import InvalidJob, TenantInUse, UnknownTenant
from jobs.holds import hold, standing
from jobs.models import CronDefinition, Job, QueueEntry, Tenant, TenantQueueLimit
from jobs.tenants import RECHECK, tenant_ids
from tests.factories import own_connection, schedule
from tests.racing import beside

pytestmark = pytest.mark.usefixtures("transactional_db")
DAY = timedelta(days=1)

GOOD = [
    "acme",
    "Ünïcode",
    "日本",
    "\u0646\u0645\u0648\u0646\u0647\u200c\u0647\u0627",
    "a b",
    "क्\u200dष",
    "x" * 100,
    "😀",
    "-",
]
WRONG = [
    "", " acme", "acme\t", "a\nb", "a\0b", "\u200b", "\u200d", "a\u202eb", "\ud800", "x" * 101, 5, None, b"acme",
]  # fmt: skip


@pytest.mark.parametrize("slug", GOOD)
def test_a_tenant_may_have_a_name_in_any_script(slug: str) -> None:
    assert schedule(tenant=slug).tenant.slug == slug
    Tenant(slug=f"{slug[:-1]}2").full_clean()


@pytest.mark.parametrize("slug", WRONG, ids=repr)
def test_what_cannot_name_a_tenant_is_refused_alike_by_schedule_and_form(slug: Any) -> None:
    with pytest.raises(InvalidJob, match=r"^tenant: ") as caught:
        schedule(tenant=slug)
    if isinstance(slug, str) and slug and "\0" not in slug and len(slug) <= 100:
        with pytest.raises(ValidationError) as refused:
            Tenant(slug=slug).full_clean()
        assert refused.value.message_dict["slug"] == [caught.value.message]


def test_two_spellings_of_the_same_letters_are_one_tenant() -> None:
    first, second = schedule(tenant="caf\u00e9"), schedule(tenant="cafe\u0301")
    assert first.tenant_id == second.tenant_id
    tenant = Tenant(slug="cafe\u0301s")
    tenant.full_clean()
    assert tenant.slug == "caf\u00e9s"


def test_a_tenant_is_made_with_the_defaults_and_outlives_the_callers_rollback(settings: Settings) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "tenant_max_running": 7}
    with transaction.atomic():
        schedule(tenant="new")
        transaction.set_rollback(True)
    made = Tenant.objects.get(slug="new")
    assert (made.weight, made.max_running, made.rate) == (1, 7, None)
    assert not Job.objects.exists()


def test_a_tenant_without_jobs_is_deleted_with_its_limits_and_comes_again_with_the_defaults() -> None:
    tenant_ids(["acme"])
    Tenant.objects.update(max_running=3, weight=5)
    TenantQueueLimit.objects.create(tenant=Tenant.objects.get(), queue="q", max_running=1)
    hold("tenant", "acme")
    tenants.delete("acme")
    assert not standing().exists()
    assert not TenantQueueLimit.objects.exists()
    with pytest.raises(UnknownTenant, match="there is no tenant 'acme'"):
        tenants.delete("acme")
    schedule(tenant="acme")
    again = Tenant.objects.get(slug="acme")
    assert (again.max_running, again.weight, again.retired_at) == (None, 1, None)


@pytest.mark.parametrize("kind", ["timer", "entry", "ended", "cron"])
def test_a_tenant_that_is_used_is_not_deleted(kind: str) -> None:
    if kind == "cron":
        tenant_id = tenant_ids(["acme"])["acme"]
        CronDefinition.objects.create(
            name="c", tenant_id=tenant_id, expression="* * * * *", job_type="test.noop"
        )
    else:
        job = schedule(tenant="acme", delay=DAY if kind == "timer" else -DAY)
        if kind == "ended":
            job.cancel()
    with pytest.raises(TenantInUse, match="has jobs or cron definitions"):
        tenants.delete("acme")
    assert Tenant.objects.get().retired_at is None


@pytest.fixture
def other_process(transactional_db: None) -> None:
    """It knows the tenant acme, which is deleted meanwhile by another."""
    tenant_ids(["acme"])
    known = dict(tenants._ids)
    tenants.delete("acme")
    tenants._ids.update(known)


@pytest.mark.usefixtures("other_process")
def test_a_job_that_another_process_schedules_for_a_deleted_tenant_keeps_its_tenant() -> None:
    job = schedule(tenant="acme")
    assert job.tenant.slug == "acme"
    with own_connection() as connection:
        assert tenants.sweep(connection, clock.now() + 2 * DAY) == 0
    assert Tenant.objects.get(slug="acme").retired_at is None
    assert QueueEntry.objects.get().tenant_id == job.tenant_id


def test_who_deletes_a_tenant_may_use_it_in_the_same_transaction() -> None:
    """The row is made on a side connection, which must not wait for the caller."""
    old = tenant_ids(["acme"])["acme"]

    def act() -> Job:
        with transaction.atomic():
            tenants.delete("acme")
            return schedule(tenant="acme")

    job = beside(act).result(20)
    assert job.tenant_id == old
    with own_connection() as connection:
        tenants.sweep(connection, clock.now() + 2 * DAY)
    assert Tenant.objects.get(slug="acme").retired_at is None


def test_nobody_waits_for_a_tenant_that_is_being_deleted() -> None:
    old = tenant_ids(["acme"])["acme"]
    with transaction.atomic():
        tenants.delete("acme")
        tenants.forget()
        assert beside(lambda: schedule(tenant="acme").tenant_id).result(20) == old
    with own_connection() as connection:
        tenants.sweep(connection, clock.now() + 2 * DAY)
    assert Tenant.objects.get(slug="acme").retired_at is None


@pytest.mark.usefixtures("other_process")
def test_another_process_finds_out_within_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    later = boottime() + RECHECK
    monkeypatch.setattr(tenants, "boottime", lambda: later)
    tenant_ids(["acme"])
    assert Tenant.objects.get(slug="acme").retired_at is None


@pytest.mark.usefixtures("other_process")
def test_a_deleted_tenant_goes_after_a_day_by_the_janitor() -> None:
    with own_connection() as connection:
        assert tenants.sweep(connection, clock.now() + DAY - timedelta(minutes=1)) == 0
        assert tenants.sweep(connection, clock.now() + DAY + timedelta(minutes=1)) == 1
        assert not Tenant.objects.exists()
        tenant_ids(["else"])
        tenants.delete("else")
        Tenant.objects.update(retired_at=clock.now() - 2 * DAY)
        Janitor().run_once(connection, clock.now())
    assert not Tenant.objects.exists()


def test_a_tenant_is_asked_for_once_a_minute(django_assert_num_queries: Any) -> None:
    tenant_ids(["acme"])
    with django_assert_num_queries(0):
        assert set(tenant_ids(slug for slug in ["acme", "acme"])) == {"acme"}
    connections["default"].close()
