"""Who sees some tenants sees these alone, also in numbers."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from dispatch.rollup import Rollups
from jobs.clock import DatabaseClock
from jobs.models import Hold, Tenant
from tests.db.test_admin_tools import VIEW, operator_with
from tests.factories import Connection, schedule


@pytest.fixture
def support(connection: Connection) -> Client:
    for slug in ("acme", "zebra"):
        schedule(tenant=slug)
        schedule(tenant=slug, delay=timedelta(minutes=10))
    schedule(tenant="zebra", delay=timedelta(minutes=20))
    Rollups().run_once(connection, DatabaseClock().read(connection))
    return operator_with(*VIEW, tenants=["acme"])


def test_the_overview_is_of_its_tenants(support: Client) -> None:
    page = support.get("/admin/jobs/")
    assert page.context["slugs"] == ("acme",)
    assert page.context["standing"].waiting == 1
    assert page.context["ahead"].total == 2  # that of this minute, and that in ten
    assert "zebra" not in page.text


def test_the_forecast_is_of_its_tenants(support: Client) -> None:
    page = support.get("/admin/jobs/job/forecast/")
    found = page.context["forecast"]
    assert [top.lines for top in page.context["tops"]] == [[("acme", 2)]]
    assert found.capacity is None


def test_the_strip_tells_of_holds_of_everything_and_of_its_tenants(support: Client) -> None:
    for scope, key in (("all", ""), ("tenant", "acme"), ("tenant", "zebra"), ("group", "g"), ("queue", "q")):
        Hold.objects.create(scope=scope, key=key, reason=f"because {key}")
    page = support.get("/admin/jobs/job/").text
    assert page.count("because") == 2
    assert "because acme" in page


@pytest.mark.parametrize(
    "path", ["job/errors/", "job/types/", "queue/", "job/health/", "process/workers/", "hold/"]
)
def test_pages_that_mix_tenants_are_closed(support: Client, path: str) -> None:
    assert support.get(f"/admin/jobs/{path}").status_code == 403


def test_a_tenant_is_shown_without_what_others_have(support: Client) -> None:
    acme, zebra = (Tenant.objects.get(slug=slug) for slug in ("acme", "zebra"))
    page = support.get(f"/admin/jobs/tenant/{acme.pk}/change/")
    assert "all tenants" not in page.text
    assert support.get(f"/admin/jobs/tenant/{zebra.pk}/change/", follow=True).text.count("Tenant zebra") == 0
