"""Every page of the console, change forms included, sends at most eight statements beside those about who asks."""

from __future__ import annotations

import sys
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.db import connection as django_connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dispatch.rollup import Rollups
from jobs import holds, operator
from jobs.clock import DatabaseClock
from jobs.console import remember
from jobs.expanding import tick_id
from jobs.leases import register
from jobs.models import CronDefinition, CronTick, ProcessKind, Queue, SavedView, Tenant, TenantQueueLimit
from jobs.search.count import count
from tests.db.test_admin_matrix import POSTED_ONLY, WRITES
from tests.db.test_admin_permissions import addresses, path_of
from tests.db.test_admin_permissions import rows as rows
from tests.db.test_admin_tools import operator_with, page_of, user_with
from tests.db.test_console_pages import AUTH
from tests.db.verbs import SITUATIONS, job_so
from tests.factories import ERROR, Connection, come_due, schedule

pytestmark = pytest.mark.django_db

BUDGET = 8
ASKED: dict[str, list[dict[str, str]]] = {
    "jobs_job_changelist": [
        {"q": "tenant:acme type:test.*"},
        {"q": "state:failed tenant:acme finished:-2d..now"},
    ],
    "jobs_job_overview": [{"span": "7d"}],
    "jobs_job_errors": [{"span": "1h"}],
    "jobs_job_waiting": [{"tenant": "acme"}, {"queue": "queued", "tenant": "acme"}],
    "jobs_job_type": [{"name": "test.noop"}],
    "jobs_job_triage": [{"fingerprint": ERROR.fingerprint}],
    "jobs_queue_one": [{"name": "queued"}],
    "jobs_operation_new": [{"q": "state:failed tenant:acme"}],
    "jobs_crondefinition_preview": [{"expression": "30 2 * * *", "timezone": "Europe/Berlin"}],
    "jobs_operatoraction_changelist": [{"q": "operator0", "verb": "cancel"}],
}
"""What a page is about, where its address does not say so."""


def everything() -> list[str]:
    """All permissions but the one to see every tenant."""
    models = [
        str(model._meta.model_name) for model in admin.site._registry if model._meta.app_label == "jobs"
    ]
    return [
        *(f"{verb}_{model}" for model in models for verb in ("view", "add", "change", "delete")),
        *(each.rpartition(".")[2] for each in {command.permission for command in operator.COMMANDS.values()}),
        *WRITES.values(), "bulk_job", "bulk_any", "share_view", "export_job", "triage_error", "approve_operation",
    ]  # fmt: skip


@pytest.fixture
def world(here: Connection, rows: dict[str, Any], steady_clock: None) -> dict[str, Any]:
    """Jobs in every situation of several tenants, and rows of everything that pages list; the tenant and the queue that
    have pages of their own are limited in every way."""
    jobs = [
        job_so(situation, here, tenant=tenant, group="red", unique_key=f"{situation}-{tenant}")
        for tenant in ("acme", "beta")
        for situation in SITUATIONS
    ]
    operator.act(user_with("cancel_job"), "cancel", [job.pk for job in jobs if job.state == "retryable"])
    for n in range(25):
        schedule(tenant=f"t{n}", queue=f"q{n}", concurrency_key="k")
        register(here, ProcessKind.WORKER, queues=[f"q{n}"], types=["test.noop"])
        register(here, ProcessKind.DISPATCHER)
        holds.hold("queue", f"q{n}", reason="because")
        SavedView.objects.create(name=f"v{n}", query="state:failed", owner=user_with(), shared=True)
        definition = CronDefinition.objects.create(
            name=f"c{n}",
            tenant=Tenant.objects.get(slug=f"t{n}"),
            expression="*/5 * * * *",
            job_type="test.noop",
        )
        slot = timezone.now().replace(second=0, microsecond=0)
        CronTick.objects.create(
            id=tick_id(definition.pk, 1, slot),
            definition_id=definition.pk,
            revision=1,
            slot=slot,
            outcome="fired",
        )
    come_due(here)
    limits = {"max_running": 3, "rate": 5, "rate_per": "second", "burst": 9}
    acme = Tenant.objects.filter(slug="acme")
    acme.update(**limits, temporary_max_running=2, temporary_until=timezone.now() + timedelta(hours=1))
    Queue.objects.filter(pk=rows["queue"]).update(**limits)
    for n in range(5):
        TenantQueueLimit.objects.create(tenant=acme.get(), queue=f"q{n}", max_running=1)
    operator.deploy(user_with("mark_deploy"), "v1")
    Rollups().run_once(here, DatabaseClock().read(here))
    return {**rows, "tenant": acme.get().pk, "jobs": jobs}


def pages(rows: dict[str, Any]) -> list[tuple[str, str]]:
    """The name and the address of whatever the URLconf leads to."""
    found = [("app_list", "/admin/jobs/"), *(("jobs_job_change", page_of(job)) for job in rows["jobs"])]
    for model, name, wanted in addresses():
        url = path_of(model, name, wanted, rows)
        found += [(name, url), *((name, f"{url}?{urlencode(asked)}") for asked in ASKED.get(name, []))]
    return found


def cost(client: Client, url: str) -> list[str] | None:
    """The page's own statements; None: there is no page."""
    remember.forget()
    with CaptureQueriesContext(django_connection) as captured:
        response = client.get(url)
    if response.status_code != 200:
        assert response.status_code in (302, 403, 404, 405), url
        return None
    return [sql for query in captured if not AUTH.search(sql := query["sql"])]


@pytest.mark.parametrize("tenants", [None, ["acme", "beta"]], ids=["of all", "of some tenants"])
def test_every_page_stays_in_the_budget(world: dict[str, Any], tenants: list[str] | None) -> None:
    client = operator_with(*everything(), tenants=tenants)
    over, shown = {}, set()
    for name, url in pages(world):
        sent = cost(client, url)
        if sent is not None:
            shown.add(name)
            if len(sent) > BUDGET:
                over[url] = [sql[:150] for sql in sent]
    assert over == {}
    if tenants is None:
        missing = {name for _, name, _ in addresses()} - shown - POSTED_ONLY
        assert {name for name in missing if not name.endswith(("_history", "_add", "_delete"))} == set()


@pytest.mark.parametrize("tenants", [None, ["acme", "beta"]], ids=["of all", "of some tenants"])
@pytest.mark.parametrize("page", ["job/", "operation/new/cancel/"])
def test_a_search_of_names_of_every_kind_stays_in_the_budget(
    world: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tenants: list[str] | None, page: str
) -> None:
    preview = sys.modules["jobs.operations.preview"]  # the package has a function of its name
    monkeypatch.setattr(preview, "count", partial(count, cap=0))  # there are more than are counted
    holds.hold("tenant", "acme", reason="because")
    line = "test.noop tenant:acme -tenant:beta key:queued-acme,scheduled-acme is:held"
    client = operator_with(*everything(), tenants=tenants)
    sent = cost(client, f"/admin/jobs/{page}?{urlencode({'q': line})}")
    assert sent is not None
    assert sum('"jobs_queueentry"' in sql for sql in sent) >= 2  # it was found, and read
    if page.startswith("operation"):  # it asks for the database's clock as well
        sent = [sql for sql in sent if '"jobs_tenantmember"' not in sql]  # that is about who asks
    assert len(sent) <= BUDGET, "\n".join(sql[:150] for sql in sent)


def test_each_name_in_a_search_is_looked_up_once(world: dict[str, Any]) -> None:
    client = operator_with(*everything(), tenants=["acme", "beta"])
    one, many = (
        cost(client, f"/admin/jobs/job/?{urlencode({'q': line})}")
        for line in ("acme", "acme test.noop q3 -tenant:beta")
    )
    assert one is not None
    assert many is not None
    assert len(many) <= len(one)
