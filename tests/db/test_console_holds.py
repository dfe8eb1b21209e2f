"""Holds made and lifted in the console, each with its record."""

from __future__ import annotations

from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from jobs.console import remember
from jobs.leases import register
from jobs.models import Hold, OperatorAction, ProcessKind, Tenant
from jobs.registry import registry
from tests.db.test_admin_tools import VIEW, operator_with
from tests.factories import Connection, come_due, schedule

BASE = "/admin/jobs/"
HOLDS = f"{BASE}hold/"
HELD = {"scope": "tenant", "key": "acme", "reason": "unpaid", "until_0": "", "until_1": ""}


@pytest.fixture
def boss(connection: Connection) -> Client:
    return operator_with(*VIEW, "every_tenant", "view_hold", "add_hold", "change_hold")


def test_who_holds_something_stands_beside_it(boss: Client) -> None:
    Tenant.objects.get_or_create(slug="acme")
    boss.post(f"{HOLDS}add/", HELD, follow=True)
    hold = Hold.objects.get()
    assert (hold.scope, hold.key, hold.reason) == ("tenant", "acme", "unpaid")
    assert hold.by.startswith("operator")
    action = OperatorAction.objects.get()
    assert (action.verb, action.actor_name) == ("pause", hold.by)
    assert "Tenant acme held" in boss.get("/admin/jobs/job/").text


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"key": ""}, "key"),
        ({"scope": "all"}, "key"),
        ({"scope": "galaxy"}, "scope"),
        ({"until_0": "x", "until_1": "y"}, "until"),
    ],
)
def test_a_hold_of_nothing_is_refused(boss: Client, wrong: dict[str, str], field: str) -> None:
    page = boss.post(f"{HOLDS}add/", {**HELD, **wrong})
    assert page.status_code == 200
    assert page.context["adminform"].form.errors
    assert not Hold.objects.exists()


def test_a_hold_of_a_tenant_that_is_not_there_is_refused_and_keeps_its_words(boss: Client) -> None:
    page = boss.post(f"{HOLDS}add/", HELD | {"key": "nobody"}, follow=True)
    assert "Nothing is held: there is no tenant" in page.text
    assert "unpaid" in page.text
    assert not Hold.objects.exists()


def lift(client: Client, hold: Hold, **data: Any) -> Any:
    return client.post(f"{HOLDS}{hold.pk}/lift/", data, follow=True)


def test_a_hold_is_lifted_once(boss: Client) -> None:
    hold = Hold.objects.create(scope="queue", key="mail")
    assert "Resume Queue mail" in boss.get(f"{HOLDS}{hold.pk}/lift/").text
    assert Hold.objects.get().until is None
    assert "is no longer held" in lift(boss, hold, reason="back").text
    assert "was resumed at" in lift(boss, hold).text
    hold.refresh_from_db()
    assert hold.until is not None
    assert hold.drained_at is not None
    assert list(OperatorAction.objects.values_list("verb", "reason")) == [("resume", "back")]


def test_what_was_held_may_come_back_slowly(boss: Client) -> None:
    hold = Hold.objects.create(scope="queue", key="mail")
    lift(boss, hold, drain="50")
    hold.refresh_from_db()
    assert (hold.drain, hold.drained_at) == (50, None)
    assert [each.pk for each in boss.get(HOLDS).context["draining"]] == [hold.pk]
    assert (
        "Enter a whole number" in lift(boss, Hold.objects.create(scope="queue", key="x"), drain="fast").text
    )


def test_holds_are_told_apart_by_what_they_do_now(boss: Client) -> None:
    now = timezone.now()
    held = Hold.objects.create(scope="all")
    over = Hold.objects.create(
        scope="type", key="x", since=now - timedelta(hours=2), until=now - timedelta(hours=1), drained_at=now
    )
    page = boss.get(HOLDS)
    assert [each.pk for each in page.context["held"]] == [held.pk]
    assert [each.pk for each in page.context["over"]] == [over.pk]
    assert "Nothing is held." in boss.get(HOLDS, follow=True).text or page.context["held"]


def test_what_is_held_says_so_where_it_is_listed(boss: Client, connection: Connection) -> None:
    schedule(queue="mail", tenant="acme")
    register(connection, ProcessKind.WORKER, queues=["mail"], types=registry.names())
    pages = (
        f"{BASE}queue/", f"{BASE}queue/one/?name=mail", f"{BASE}tenant/",
        f"{BASE}tenant/{Tenant.objects.get(slug='acme').pk}/change/", f"{BASE}job/types/", f"{BASE}job/types/one/?name=test.noop",
    )  # fmt: skip
    badge = 'state-held">held'
    assert not any(badge in boss.get(page).text for page in pages)
    for n in range(7):  # more than the strip shows
        for scope, key in (("queue", "mail"), ("tenant", "acme"), ("type", "test.noop"), ("queue", f"q{n}")):
            Hold.objects.create(scope=scope, key=key)
    remember.forget()
    assert [page for page in pages if badge not in boss.get(page).text] == []


def test_a_queue_that_waits_because_it_is_held_is_no_alarm(boss: Client, connection: Connection) -> None:
    register(connection, ProcessKind.DISPATCHER)
    register(connection, ProcessKind.WORKER, queues=["mail"], types=registry.names())
    schedule(queue="mail")
    come_due(connection)
    connection.execute("UPDATE jobs_queueentry SET run_at = now() - interval '5 min'")
    assert "Queue mail is late" in boss.get(BASE).text
    Hold.objects.create(scope="queue", key="mail")
    remember.forget()
    page = boss.get(BASE).text
    assert "Queue mail is late" not in page
    assert "1 held queue has jobs due, the oldest for 5 min" in page


def test_a_hold_leads_to_the_jobs_that_it_stops(boss: Client, connection: Connection) -> None:
    held, other = (schedule(queue=queue, tenant="acme") for queue in ("red & blue", "other"))
    for scope, key, found in (
        ("queue", "red & blue", [held]),
        ("tenant", "acme", [other, held]),
        ("all", "", [other, held]),
    ):
        made = Hold.objects.create(scope=scope, key=key)
        (row,) = boss.get(HOLDS).context["held"]
        assert row.jobs_url in unescape(boss.get(HOLDS).text)
        page = boss.get(row.jobs_url)
        assert {job.pk for job in page.context["cl"].result_list} == {job.pk for job in found}
        made.delete()


def test_who_may_only_look_cannot_lift_and_the_attempt_is_recorded(connection: Connection) -> None:
    hold = Hold.objects.create(scope="queue", key="mail")
    client = operator_with(*VIEW, "every_tenant", "view_hold")
    assert "Resume …" not in client.get(HOLDS).text.partition('id="live"')[2]
    assert client.post(f"{HOLDS}{hold.pk}/lift/").status_code == 403
    assert Hold.objects.get().until is None
    assert OperatorAction.objects.get().skipped == {"denied": 1}


def test_a_hold_is_never_deleted_nor_turned_to_something_else(boss: Client) -> None:
    hold = Hold.objects.create(scope="queue", key="mail")
    assert boss.post(f"{HOLDS}{hold.pk}/delete/", {"post": "yes"}).status_code == 403
    boss.post(f"{HOLDS}{hold.pk}/change/", {**HELD, "scope": "all", "key": "", "reason": "longer"})
    hold.refresh_from_db()
    assert (hold.scope, hold.key, hold.reason) == ("queue", "mail", "longer")
