"""Every address of the admin asks for its permission; staff alone is not enough."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from jobs.models import (
    CronDefinition,
    Hold,
    Operation,
    OperatorAction,
    Process,
    Queue,
    SavedView,
    Tenant,
    TenantMember,
)
from tests.db.test_admin_tools import MODELS, VIEW, operator_with, user_with
from tests.factories import schedule

pytestmark = pytest.mark.django_db

OURS = [model for model in admin.site._registry if model._meta.app_label == "jobs"]
WRITABLE = {"crondefinition", "tenant", "queue", "tenantmember", "hold"}
EVERYBODY = {"jobs_job_me"}
"""Who may enter the admin has preferences."""


def addresses() -> list[tuple[str, str, dict[str, Any]]]:
    """Generated from the URLconf, so that a new page cannot be forgotten: model, name, what the path needs."""
    found = []
    for model in OURS:
        for pattern in admin.site._registry[model].get_urls():
            if pattern.name:
                wanted = dict.fromkeys(pattern.pattern.converters)
                found.append((str(model._meta.model_name), pattern.name, wanted))
    return found


@pytest.fixture
def rows() -> dict[str, Any]:
    job = schedule()
    tenant = job.tenant
    return {
        "job": job.pk,
        "tenant": tenant.pk,
        "queue": Queue.objects.create(name="q").pk,
        "crondefinition": CronDefinition.objects.create(
            name="c", tenant=tenant, expression="0 1 * * *", job_type="test.noop"
        ).pk,
        "process": Process.objects.create(kind="worker", host="h", pid=1, lease_expires_at=job.created_at).pk,
        "operatoraction": change_of(tenant).pk,
        "operation": operation_on(tenant).pk,
        "tenantmember": TenantMember.objects.create(user=User.objects.create_user("m"), tenant=tenant).pk,
        "hold": Hold.objects.create(scope="tenant", key=tenant.slug, reason="x", by="x").pk,
        "savedview": SavedView.objects.create(name="v", query="q", owner=User.objects.get(username="m")).pk,
    }


def change_of(tenant: Tenant) -> OperatorAction:
    """Of limits: what can be taken back."""
    return OperatorAction.objects.create(
        verb="limit", actor_name="x", target={"tenant": tenant.slug}, tenant_id=tenant.pk,
        before={"max_running": 5}, after={"max_running": None},
    )  # fmt: skip


def operation_on(tenant: Tenant) -> Operation:
    return Operation.objects.create(
        verb="cancel", query=f"tenant:{tenant.slug} due:today", scope=[tenant.pk], reason="because", author_name="x",
        action_id=1, cutoff=tenant.created_at, ceiling=10, rate=1,
    )  # fmt: skip


def path_of(model: str, name: str, wanted: dict[str, Any], rows: dict[str, Any]) -> str:
    values = {"object_id": rows[model], "verb": "retry", "pk": rows["savedview"]}
    return reverse(f"admin:{name}", kwargs={key: values[key] for key in wanted})


@pytest.mark.parametrize(("model", "name", "wanted"), addresses())
@pytest.mark.parametrize("method", ["get", "post"])
def test_staff_without_permission_is_refused(
    rows: dict[str, Any], model: str, name: str, wanted: dict[str, Any], method: str
) -> None:
    if name in EVERYBODY:
        return
    others = [each for each in VIEW if each != f"view_{model}"]
    response = getattr(operator_with(*others), method)(path_of(model, name, wanted, rows))
    if response.status_code == 302:  # Django's own old address, and a history that is none, lead to the page
        response = operator_with(*others).get(response["Location"])
    assert response.status_code in (403, 405)


@pytest.mark.parametrize(("model", "name", "wanted"), addresses())
def test_who_is_not_logged_in_is_sent_to_the_login(
    client: Client, rows: dict[str, Any], model: str, name: str, wanted: dict[str, Any]
) -> None:
    response = client.post(path_of(model, name, wanted, rows))
    assert "/admin/login/" in response["Location"]


@pytest.mark.parametrize("model", MODELS)
def test_who_may_only_view_cannot_write(rows: dict[str, Any], model: str) -> None:
    client = operator_with(*VIEW)
    assert client.get(f"/admin/jobs/{model}/").status_code == 200
    for page in ("add/", f"{rows[model]}/change/", f"{rows[model]}/delete/"):
        response = client.post(f"/admin/jobs/{model}/{page}", {"name": "x", "slug": "x", "post": "yes"})
        assert response.status_code == 403 or (model, response.status_code) == ("tenant", 302)
    assert client.get(f"/admin/jobs/{model}/{rows[model]}/change/").status_code == 200


@pytest.mark.parametrize("model", [name for name in MODELS if name not in WRITABLE])
def test_nobody_adds_changes_or_deletes_what_the_scheduler_writes(
    admin_client: Client, rows: dict[str, Any], model: str
) -> None:
    for page in ("add/", f"{rows[model]}/change/", f"{rows[model]}/delete/"):
        assert admin_client.post(f"/admin/jobs/{model}/{page}", {"post": "yes"}).status_code == 403
    assert "delete_selected" not in admin_client.get(f"/admin/jobs/{model}/").text


def test_the_tabs_are_shown_to_who_may_see_jobs() -> None:
    assert "Failed jobs" in operator_with("view_job").get("/admin/jobs/").text
    assert "Failed jobs" not in operator_with("view_tenant").get("/admin/jobs/").text


def test_a_user_without_staff_is_not_let_in(client: Client) -> None:
    user = user_with(*VIEW)
    user.is_staff = False
    user.save()
    client.force_login(user)
    assert client.get("/admin/jobs/job/").status_code == 302
