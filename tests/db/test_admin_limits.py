"""Tenants, queues, processes and the audit in the admin."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils.html import escape

from jobs import tenants
from jobs.leases import end
from jobs.models import OperatorAction, Process, Queue, Tenant
from jobs.operator import Shell
from jobs.states import JobState
from tests.db.test_admin_tools import audit, messages_of, operator_with
from tests.factories import Connection, job_in, process, schedule

pytestmark = pytest.mark.django_db

TENANTS, QUEUES = "/admin/jobs/tenant/", "/admin/jobs/queue/"


@pytest.fixture
def tenant() -> Tenant:
    return Tenant.objects.get_or_create(slug="acme", defaults={"weight": 1})[0]


def test_a_limit_is_changed_and_recorded_with_before_and_after(admin_client: Client, tenant: Tenant) -> None:
    response = admin_client.post(
        f"{TENANTS}{tenant.pk}/change/",
        {"weight": "3", "max_running": "20", "rate_per": "second"},
        follow=True,
    )
    assert response.status_code == 200
    tenant.refresh_from_db()
    assert (tenant.weight, tenant.max_running) == (3, 20)
    action = OperatorAction.objects.get()
    assert (action.target["tenant"], action.tenant_id) == ("acme", tenant.pk)
    assert action.before == {"weight": 1, "max_running": None}
    assert action.after == {"weight": 3, "max_running": 20}
    assert (action.via, action.address) == ("console", "127.0.0.1")


@pytest.mark.parametrize("kind", ["tenant", "queue"])
def test_a_limit_of_zero_is_warned_of(admin_client: Client, tenant: Tenant, kind: str) -> None:
    row = tenant if kind == "tenant" else Queue.objects.create(name="q")
    response = admin_client.post(
        f"/admin/jobs/{kind}/{row.pk}/change/",
        {"weight": "1", "max_running": "0", "rate_per": "second"},
        follow=True,
    )
    assert "none of its jobs starts" in messages_of(response)[0]
    assert "0: nothing runs" in admin_client.get(f"/admin/jobs/{kind}/").text


@pytest.mark.parametrize(("field", "value"), [("weight", "0"), ("max_running", "-1"), ("max_running", "x")])
def test_impossible_limits_are_refused(admin_client: Client, tenant: Tenant, field: str, value: str) -> None:
    given = {"weight": "1", "max_running": "", "rate_per": "second", field: value}
    response = admin_client.post(f"{TENANTS}{tenant.pk}/change/", given)
    assert list(response.context["adminform"].form.errors) == [field]
    assert audit() == []


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_tenant_with_jobs_is_not_deleted_and_the_reason_is_said(
    admin_client: Client, tenant: Tenant, method: str
) -> None:
    schedule(tenant="acme")
    response = getattr(admin_client, method)(f"{TENANTS}{tenant.pk}/delete/", {"post": "yes"}, follow=True)
    assert "The tenant acme has jobs" in messages_of(response)[0]
    assert Tenant.objects.get(pk=tenant.pk).retired_at is None
    assert audit() == []
    assert "delete_selected" not in admin_client.get(TENANTS).text


def test_a_tenant_without_jobs_is_deleted_and_recorded(admin_client: Client, tenant: Tenant) -> None:
    tenants.tenant_ids(["acme"])
    admin_client.post(f"{TENANTS}{tenant.pk}/delete/", {"post": "yes"}, follow=True)
    assert "acme" not in admin_client.get(TENANTS).text
    assert OperatorAction.objects.get(verb="delete").before["slug"] == "acme"


def test_the_name_that_jobs_refer_to_stays(admin_client: Client, tenant: Tenant) -> None:
    queue = Queue.objects.create(name="q")
    admin_client.post(
        f"{TENANTS}{tenant.pk}/change/", {"slug": "x", "weight": "2", "max_running": "", "rate_per": "second"}
    )
    admin_client.post(f"{QUEUES}{queue.pk}/change/", {"name": "x", "max_running": "2", "rate_per": "second"})
    tenant.refresh_from_db()
    queue.refresh_from_db()
    assert (tenant.slug, tenant.weight) == ("acme", 2)
    assert (queue.name, queue.max_running) == ("q", 2)


def test_the_limit_of_a_queue_is_lifted_by_deleting_its_row(admin_client: Client) -> None:
    queue = Queue.objects.create(name="q", max_running=3)
    admin_client.post(f"{QUEUES}{queue.pk}/delete/", {"post": "yes"})
    assert not Queue.objects.exists()
    assert OperatorAction.objects.get().before["max_running"] == 3


def test_live_processes_come_first_and_lost_ones_are_called_so(
    admin_client: Client, connection: Connection
) -> None:
    ended, lost = process(connection), process(connection, lease=-timedelta(seconds=1))
    job_in(JobState.RUNNING, connection)
    live = Process.objects.order_by("-id")[0].pk
    end(connection, [ended])
    found = admin_client.get("/admin/jobs/process/").context["cl"].result_list
    assert [(row.pk, row.lease, row.held) for row in found] == [
        (live, "live", 1),
        (lost, "lost", 0),
        (ended, "ended", 0),
    ]


def test_the_audit_is_filtered_by_known_verbs(admin_client: Client) -> None:
    for verb in ("retry", "cancel"):
        OperatorAction.objects.create(verb=verb, actor_name="ada", skipped={"denied": 2})
    page = admin_client.get("/admin/jobs/operatoraction/", {"verb": "cancel"})
    assert [action.verb for action in page.context["cl"].result_list] == ["cancel"]
    assert '<span class="state state-denied">denied</span>' in page.text
    assert admin_client.get("/admin/jobs/operatoraction/", {"reason__iregex": "x"}).status_code == 400


@pytest.mark.parametrize("kind", ["tenant", "queue"])
def test_of_two_who_edit_the_same_limits_the_second_is_told(
    admin_client: Client, tenant: Tenant, kind: str
) -> None:
    row = tenant if kind == "tenant" else Queue.objects.create(name="acme")
    url = f"/admin/jobs/{kind}/{row.pk}/change/"
    form = admin_client.get(url).context["adminform"].form
    seen = form["seen"].value()
    assert f'value="{escape(seen)}"' in admin_client.get(url).text
    mine = {"weight": "1", "max_running": "20", "rate_per": "second", "seen": seen}
    call_command("jobs", "limits", f"--{kind}", "acme", "--max-running", "40", stdout=StringIO())
    response = admin_client.post(url, mine)
    (error,) = response.context["adminform"].form.non_field_errors()
    assert error.startswith(f"{Shell().get_username()}, ")
    assert error.endswith("has changed this meanwhile: max running unlimited → 40. Load it again.")
    row.refresh_from_db()
    assert row.max_running == 40
    again = admin_client.get(url).context["adminform"].form["seen"].value()
    assert admin_client.post(url, {**mine, "seen": again}).status_code == 302
    row.refresh_from_db()
    assert row.max_running == 20
    assert "seen" not in OperatorAction.objects.latest("id").after


def test_a_broken_memory_of_what_was_seen_changes_nothing(admin_client: Client, tenant: Tenant) -> None:
    for seen in ("x", "[]", "{}", '{"weight": 1}'):
        response = admin_client.post(
            f"{TENANTS}{tenant.pk}/change/", {"weight": "3", "rate_per": "second", "seen": seen}
        )
        assert response.context["adminform"].form.non_field_errors() == [
            "This form is broken: load it again."
        ]


def test_who_may_only_look_has_no_memory_in_the_page(tenant: Tenant) -> None:
    page = operator_with("view_tenant").get(f"{TENANTS}{tenant.pk}/change/")
    assert page.status_code == 200
    assert 'name="seen"' not in page.text
