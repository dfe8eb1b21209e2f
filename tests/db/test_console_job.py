"""The page of one job: why it waits, and its life in order."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client

from jobs import operator
from jobs.console.gates import GATES
from jobs.leases import register
from jobs.models import Hold, ProcessKind, Tenant
from jobs.registry import registry
from jobs.states import JobState
from tests.db.test_admin_tools import VIEW, operator_with, page_of, user_with
from tests.factories import Connection, claim, come_due, failed, finish, job_in, process, schedule


@pytest.fixture
def boss(connection: Connection) -> Client:
    return operator_with(*VIEW, "every_tenant")


def panel(client: Client, job: Any) -> Any:
    return client.get(page_of(job)).context["why"]


def ready(connection: Connection, **options: Any) -> Any:
    register(connection, ProcessKind.WORKER, queues=["test.noop"], types=registry.names())
    job = schedule(**options)
    come_due(connection)
    return job


def test_what_nothing_holds_says_so_and_every_gate_is_open(boss: Client, connection: Connection) -> None:
    found = panel(boss, ready(connection))
    assert found.title == "Nothing holds it"
    assert [gate.name for gate in found.gates] == [name for name, _ in GATES]
    assert all(gate.is_open for gate in found.gates)


def test_every_shut_gate_is_told_with_the_place_to_change_it(boss: Client, connection: Connection) -> None:
    job = ready(connection, tenant="acme")
    Tenant.objects.filter(slug="acme").update(max_running=0)
    Hold.objects.create(scope="queue", key="test.noop", by="ada", reason="gateway is down")
    found = panel(boss, job)
    assert found.title == "Why it waits"
    assert "test.noop is paused" in found.told
    assert "gateway is down" in found.told
    shut = {gate.name: gate for gate in found.gates if not gate.is_open}
    assert set(shut) == {"Holds", "Tenant's limits"}
    assert shut["Holds"].url == "/admin/jobs/hold/"
    assert shut["Tenant's limits"].url == f"/admin/jobs/tenant/{job.tenant_id}/change/"


def test_a_job_that_is_not_due_is_told_when_it_is(boss: Client, connection: Connection) -> None:
    found = panel(boss, schedule(delay=timedelta(days=1)))
    assert found.style == "waits"
    assert "not due until" in found.told
    assert found.until is not None
    assert found.gates == []


def test_a_job_that_ended_has_nothing_to_wait_for(boss: Client, connection: Connection) -> None:
    assert panel(boss, job_in(JobState.COMPLETED, connection)) is None


def test_a_running_job_says_who_has_it(boss: Client, connection: Connection) -> None:
    found = panel(boss, job_in(JobState.RUNNING, connection))
    assert (found.title, found.style, found.gates) == ("It runs", "", [])


def test_its_life_is_told_in_order(boss: Client, connection: Connection) -> None:
    job = schedule(max_attempts=2)
    worker = process(connection)
    finish(connection, claim(connection, job, worker), failed(after=timedelta()))
    finish(connection, claim(connection, job, worker), failed(final=True))
    user = user_with("retry_job", "every_tenant")
    operator.act(user, "retry", [job.pk], "fixed")
    told = [event.told for event in boss.get(page_of(job)).context["events"]]
    assert told[0] == "Scheduled"
    assert [each.partition(" did")[0] for each in told if each.startswith("Attempt")] == [
        "Attempt 1",
        "Attempt 2",
    ]
    assert told.index("Scheduled") < told.index(f"Retry by {user.get_username()}")


def test_the_part_that_refreshes_has_no_buttons(boss: Client, connection: Connection) -> None:
    job = job_in(JobState.QUEUED, connection)
    part = boss.get(page_of(job), {"_live": "1"})
    assert "<form" not in part.text
    assert "<html" not in part.text
    assert str(job.pk) in part.text


@pytest.mark.parametrize("tenants", [None, ["acme"]])
def test_a_job_leads_to_those_of_its_kind(connection: Connection, tenants: list[str] | None) -> None:
    job = job_in(JobState.FAILED, connection, tenant="acme", group="spring & autumn")
    client = operator_with(*VIEW, tenants=tenants)
    page = client.get(page_of(job)).text
    links = [unescape(link) for link in re.findall(r'<dd><a href="([^"]+)"', page)]
    found = [link for link in links if "/job/?q=" in link]
    assert len(found) == 2  # of its group, and of its error
    for link in found:
        assert [each.pk for each in client.get(link).context["cl"].result_list] == [job.pk]
    pages = [link for link in links if "one/?name=test.noop" in link]
    assert len(pages) == (2 if tenants is None else 0)
    assert all(client.get(link).status_code == 200 for link in pages)
