"""Deploys: marked by a command, drawn where something changed, and told beside what began or ended with them."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from dispatch.rollup import Rollups
from jobs import clock, operator, rollups
from jobs.clock import DatabaseClock
from jobs.console import remember
from jobs.models import Kind, OperatorAction, Rollup, Step
from jobs.operator import Denied, Shell
from tests.db.test_admin_tools import operator_with, user_with
from tests.db.test_triage import fail
from tests.factories import Connection, schedule

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def deployed(name: str, minutes_ago: float) -> None:
    action = OperatorAction(verb="deploy", actor_name="x", target={"deploy": name})
    action.at = clock.now() - timedelta(minutes=minutes_ago)
    action.save()


@pytest.fixture
def client(connection: Connection, steady_clock: None) -> Client:
    remember.forget()
    schedule(tenant="acme")
    Rollups().run_once(connection, DatabaseClock().read(connection))
    at = rollups.floor(clock.now() - timedelta(minutes=20), Step.MINUTE)
    Rollup.objects.create(kind=Kind.ALL, step=Step.MINUTE, at=at, due=3, completed=1, late=[1])
    return operator_with("view_job", "view_queue", "view_process", "view_tenant")


def test_the_command_marks_it_and_the_audit_keeps_it() -> None:
    out = StringIO()
    call_command("jobs", "deploy", "v1.2.3", reason="hotfix postgres://u:hunter2@h/d", stdout=out)
    assert out.getvalue().strip() == "marked v1.2.3"
    action = OperatorAction.objects.get()
    assert (action.verb, action.target, action.actor_name) == (
        "deploy", {"deploy": "v1.2.3"}, Shell().get_username(),
    )  # fmt: skip
    assert "hunter2" not in action.reason
    with pytest.raises(CommandError, match="a deploy has a name"):
        call_command("jobs", "deploy", "  ", stdout=out)


def test_who_may_not_is_refused_and_recorded() -> None:
    with pytest.raises(Denied):
        operator.deploy(user_with("view_job"), "v1")
    assert OperatorAction.objects.get().result == "denied"
    operator.deploy(user_with("mark_deploy"), "v1")


def test_the_charts_show_the_deploys_of_their_time(client: Client) -> None:
    deployed("release-1 <b>", 30)
    deployed("release-0", 90)
    page = client.get("/admin/jobs/")
    (event,) = page.context["flow"].events
    assert 280 < float(event.x) < 330  # in the middle of an hour
    assert event.label.endswith("release-1 <b>")
    assert page.text.count("release-1 &lt;b&gt;") == 2 * 2  # flow and lateness: a title and the words below
    assert "release-0" not in page.text


def test_a_denied_mark_is_none_and_the_latest_are_kept(client: Client) -> None:
    operator_action = OperatorAction(verb="deploy", actor_name="x", target={"deploy": "no"}, result="denied")
    operator_action.save()
    for n in range(25):
        deployed(f"v{n}", 25 - n)
    now = clock.now()
    found = rollups.series(Kind.ALL, "", now - HOUR, now + HOUR).deploys
    assert [name for _, name in found] == [f"v{n}" for n in range(5, 25)]


def test_who_sees_some_tenants_sees_no_deploys(client: Client) -> None:
    deployed("release-1", 5)
    some = operator_with("view_job", "view_tenant", tenants=["acme"])
    assert "release-1" not in some.get("/admin/jobs/").text


def test_errors_that_began_or_ended_with_a_deploy_say_so(client: Client, connection: Connection) -> None:
    deployed("v1", 30)
    fail(connection)
    page = client.get("/admin/jobs/job/errors/")
    (card,) = page.context["cards"]
    assert (card.since.name, card.until) == ("v1", None)
    assert "Began after" in page.text
    connection.execute("UPDATE jobs_outcome SET finished_at = now() - interval '40 min'")
    remember.forget()
    page = client.get("/admin/jobs/job/errors/")
    (card,) = page.context["cards"]
    assert (card.since, card.until.name) == (None, "v1")
    assert "None since" in page.text
    assert len(card.trend.events) == 1


def test_marks_cost_no_statement(client: Client) -> None:
    from tests.db.test_console_pages import own

    before = len(own(client, "/admin/jobs/"))
    deployed("v1", 5)
    assert len(own(client, "/admin/jobs/")) == before
