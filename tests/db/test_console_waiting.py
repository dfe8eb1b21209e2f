"""Why they wait: the reasons of many jobs, by the claim's own rules, of those that the operator sees."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from jobs import holds
from jobs.console import remember, waiting
from jobs.leases import register
from jobs.models import ProcessKind, Queue, Tenant
from tests.db.test_admin_tools import operator_with
from tests.db.test_console_pages import own
from tests.db.verbs import job_so
from tests.factories import Connection, schedule

pytestmark = pytest.mark.django_db
URL = "/admin/jobs/job/waiting/"


@pytest.fixture
def fleet(connection: Connection) -> None:
    register(connection, ProcessKind.WORKER, queues=[], types=["test.noop", "test.echo"])


@pytest.fixture
def operator(connection: Connection) -> Client:
    return operator_with("view_job", "view_queue", "view_tenant")


def causes(client: Client, **asked: str) -> dict[str, int]:
    remember.forget()
    found = client.get(URL, asked).context["waiting"]
    assert sum(cause.jobs for cause in found.causes) == found.asked
    codes: dict[str, int] = {}
    for cause in found.causes:
        codes[cause.reason.code] = codes.get(cause.reason.code, 0) + cause.jobs
    return codes


@pytest.mark.usefixtures("fleet")
def test_the_jobs_are_counted_by_what_holds_them_up(operator: Client) -> None:
    for n in range(3):
        schedule(tenant="acme", queue="mail")
        schedule("test.echo", tenant="beta", queue=f"q{n}")
    schedule(tenant="beta", queue="full")
    schedule(tenant="beta", queue="mail")
    holds.hold("tenant", "acme", reason="too loud")
    Queue.objects.create(name="full", max_running=0)
    assert causes(operator) == {"paused_tenant": 3, "queue_limit": 1, "runnable": 4}
    page = operator.get(URL, {"queue": "mail"})
    assert [cause.jobs for cause in page.context["waiting"].causes] == [3, 1]
    assert "too loud" in page.text
    assert causes(operator, tenant="beta") == {"queue_limit": 1, "runnable": 4}
    assert causes(operator, tenant="beta", queue="full") == {"queue_limit": 1}


def test_that_nobody_serves_them_is_a_reason(operator: Client) -> None:
    schedule(queue="mail")
    assert causes(operator) == {"no_worker_for_type": 1}


@pytest.mark.usefixtures("fleet")
def test_what_is_set_aside_waits_as_well(operator: Client, here: Connection) -> None:
    job = schedule(tenant="acme", queue="mail", group="red")
    holds.hold("group", "red")
    here.execute("UPDATE jobs_queueentry SET parked = 'hold' WHERE job_id = %s", [job.pk])
    assert causes(operator) == {"held_group": 1}
    assert causes(operator, queue="mail") == causes(operator, tenant="acme") == {"held_group": 1}
    assert causes(operator, queue="other") == {}


def test_who_runs_or_is_not_due_does_not_wait(operator: Client, here: Connection) -> None:
    for situation in ("running", "scheduled", "retryable", "completed"):
        job_so(situation, here)
    page = operator.get(URL)
    assert page.context["waiting"].looked == 0
    assert "Nothing waits" in page.text


@pytest.mark.usefixtures("fleet")
def test_who_sees_some_tenants_hears_of_these_alone() -> None:
    schedule(tenant="zebra", queue="mail")
    schedule(tenant="acme", queue="mail")
    client = operator_with("view_job", tenants=["acme"])
    assert causes(client) == causes(client, queue="mail") == {"runnable": 1}
    page = client.get(URL, {"tenant": "zebra"})
    assert "There is no tenant" in page.text
    assert page.context["waiting"].looked == 0
    nobody = operator_with("view_job", tenants=[])
    assert nobody.get(URL).context["waiting"].looked == 0


@pytest.mark.usefixtures("fleet")
def test_the_look_is_bounded_and_says_so(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "EACH", 5)
    monkeypatch.setattr(waiting, "KINDS", 3)
    for n in range(5):
        schedule(tenant=f"t{n}", queue=f"q{n}")
        schedule(tenant="acme", queue="mail")
    schedule(tenant="acme", queue="mail")
    found = operator.get(URL).context["waiting"]
    assert (found.looked, found.kinds, found.kinds_asked, found.asked) == (10, 6, 3, 7)
    monkeypatch.setattr(waiting, "SECONDS", -1.0)
    remember.forget()
    page = operator.get(URL)
    assert page.context["waiting"].kinds_asked == 0
    assert "0 of 6 kinds" in page.text


@pytest.mark.usefixtures("fleet")
def test_it_costs_a_statement_for_seven_kinds(operator: Client, steady_clock: Any) -> None:
    cost = []
    for kinds in (7, 40):
        for n in range(kinds):
            schedule(tenant=f"t{n}", queue=f"q{n}")
        cost.append(len(own(operator, URL)))
    assert cost[1] == cost[0] + 2  # twenty are asked


@pytest.mark.usefixtures("fleet")
def test_each_kind_has_its_own_reason(operator: Client) -> None:
    for n in range(15):
        schedule(tenant=f"t{n:02}", queue="mail")
        Tenant.objects.filter(slug=f"t{n:02}").update(max_running=0 if n % 3 == 0 else None)
    assert causes(operator) == {"tenant_limit": 5, "runnable": 10}
    found = operator.get(URL).context["waiting"]
    told = " ".join(cause.told for cause in found.causes)
    assert all((f"t{n:02}" in told) == (n % 3 == 0) for n in range(15))


def test_the_pages_of_a_queue_and_a_tenant_lead_there(operator: Client) -> None:
    schedule(tenant="acme", queue="a&b")
    page = operator.get("/admin/jobs/queue/one/", {"name": "a&b"}).text
    assert f"{URL}?queue=a%26b" in page
    assert f"{URL}?tenant=" not in page
    tenant = Tenant.objects.get(slug="acme")
    assert operator.get(f"/admin/jobs/tenant/{tenant.pk}/change/").status_code == 200
