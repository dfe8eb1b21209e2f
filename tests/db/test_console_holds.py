"""Holds made and lifted in the console, each with its record."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from jobs.models import Hold, OperatorAction, Tenant
from tests.db.test_admin_tools import VIEW, operator_with
from tests.factories import Connection

HOLDS = "/admin/jobs/hold/"
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
