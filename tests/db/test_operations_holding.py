"""A cancel that holds what it cancels: nothing of it starts, and the hold ends with the operation, however that ends."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs import holds, operations, search
from jobs.console.amounts import lasting
from jobs.models import Hold, Operation, OperatorAction
from jobs.operations import OperationRefused
from jobs.operations.holding import target_of
from tests.db.test_admin_tools import client_of, user_with
from tests.db.test_operations import ALL, finish_off, many
from tests.factories import Connection, come_due, process, take

pytestmark = pytest.mark.django_db
LINE = "group:g due:today..+2d"


@pytest.fixture
def boss() -> User:
    return user_with("view_job", "view_operation", "add_hold", *ALL, "bulk_any")


def standing() -> list[tuple[str, str]]:
    return [(hold.scope, hold.key) for hold in holds.standing()]


def test_nothing_of_it_starts_from_the_moment_on(boss: User, here: Connection) -> None:
    many(5, group="g", delay=timedelta())
    others = many(2, group="h", delay=timedelta())
    operation = operations.submit(boss, "cancel", LINE, "recalled", hold=True)
    assert Hold.objects.get().reason == f"operation {operation.pk}: recalled"
    come_due(here)
    here.execute("UPDATE jobs_hold SET since = now()")  # which stands still in this transaction
    assert {each.held.job_id for each in take(here, "test.noop", process(here))} == set(others)
    operation = finish_off(operation)
    assert (operation.state, operation.changed) == ("done", 5)
    assert list(OperatorAction.objects.order_by("id").values_list("verb", flat=True)) == [
        "cancel all",
        "pause",
    ]


def test_it_holds_until_the_last_piece(boss: User, here: Connection) -> None:
    many(600, group="g")
    operation = finish_off(operations.submit(boss, "cancel", LINE, "recalled", hold=True), steps=1)
    assert (operation.changed, standing()) == (500, [("group", "g")])
    assert (finish_off(operation).changed, standing()) == (600, [])


@pytest.mark.parametrize("how", ["stop", "author"])
def test_the_hold_ends_when_it_is_stopped_or_fails(boss: User, here: Connection, how: str) -> None:
    many(600, group="g")
    operation = finish_off(operations.submit(boss, "cancel", LINE, "why", hold=True), steps=1)
    if how == "stop":
        operations.pause(boss, operation.pk)
        assert standing() == [("group", "g")]  # nobody knows yet what will be
        operations.stop(boss, operation.pk)
    else:
        boss.user_permissions.clear()
        assert finish_off(operation).state == "failed"
    assert standing() == []


def test_a_hold_that_somebody_has_lifted_is_no_trouble(boss: User, here: Connection) -> None:
    many(2, group="g")
    operation = operations.submit(boss, "cancel", LINE, "why", hold=True)
    holds.hold("group", "g", reason="another")
    holds.lift(Operation.objects.get().hold_id or 0)
    assert finish_off(operation).state == "done"
    assert standing() == [("group", "g")]


@pytest.mark.parametrize(
    ("verb", "line", "target"),
    [
        ("cancel", "group:g", ("group", "g")),
        ("cancel", "queue:q state:queued due:today", ("queue", "q")),
        ("cancel", "type:test.noop -queue:q", ("type", "test.noop")),
        ("cancel", "group:g,h", None),
        ("cancel", "group:g queue:q", None),
        ("cancel", "-queue:q", None),
        ("cancel", "type:test.*", None),
        ("cancel", "state:queued", None),
        ("retry", "group:g", None),
    ],
)
def test_what_can_be_held_is_one_thing(boss: User, verb: str, line: str, target: Any) -> None:
    from jobs import clock

    query = search.compile_query(line, clock.now())
    assert target_of(verb, query, boss) == target
    assert target_of(verb, query, user_with(*ALL)) is None
    assert target_of(verb, query, user_with("add_hold", *ALL, tenants=["acme"])) is None


def test_a_hold_that_cannot_be_starts_nothing(here: Connection, boss: User) -> None:
    many(2, group="g")
    for user, line in ((user_with(*ALL, "bulk_any"), LINE), (boss, "state:scheduled due:today..+2d")):
        with pytest.raises(OperationRefused, match="no single group, type, tenant or queue"):
            operations.submit(user, "cancel", line, "why", hold=True)
    assert not Operation.objects.exists()
    assert not Hold.objects.exists()


def test_the_console_offers_it(boss: User, here: Connection) -> None:
    many(2, group="g")
    client, new = client_of(boss), "/admin/jobs/operation/new/cancel/"
    page = client.get(new, {"q": LINE})
    assert page.context["form"]["hold"].initial is True
    assert "Hold group g meanwhile" in page.text
    assert "hold" not in client.get(new, {"q": "state:scheduled due:today..+2d"}).context["form"].fields
    client.post(new, {"q": LINE, "reason": "why", "rate": "10", "hold": "on"})
    assert standing() == [("group", "g")]
    operation = Operation.objects.get()
    assert f"hold {operation.hold_id}" in client.get(f"/admin/jobs/operation/{operation.pk}/change/").text
    client.post(new, {"q": LINE, "reason": "why", "rate": "10"})
    assert Operation.objects.order_by("-id")[0].hold_id is None


def test_its_page_says_how_long_it_goes_on_and_leads_to_what_it_has_changed(
    boss: User, here: Connection
) -> None:
    many(600, group="g")
    operation = finish_off(operations.submit(boss, "cancel", LINE, "recalled", rate=20), steps=1)
    done, left = operation.changed, 600 - operation.changed
    page = client_of(boss).get(f"/admin/jobs/operation/{operation.pk}/change/").text
    assert f"{lasting(left / 20)} to go at this pace" in page
    (url,) = re.findall(r'href="([^"]+)">find them', page)
    list_of = client_of(boss).get(unescape(url)).context["cl"]
    assert {job.state for job in list_of.result_list} == {"cancelled"}
    assert len(list_of.result_list) == min(done, 50)
