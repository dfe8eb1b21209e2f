"""A second person: what is large begins when somebody else has approved it; and the pace of what has begun."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs import operations, operator
from jobs.conf import parse
from jobs.console import remember
from jobs.errors import NotConfigured
from jobs.models import Operation, OperatorAction
from jobs.operations import OperationRefused
from tests.db.test_admin_tools import client_of, messages_of, user_with
from tests.db.test_operations import ALL, finish_off, many
from tests.factories import Connection

pytestmark = pytest.mark.django_db
LINE = "group:g due:today..+2d"


@pytest.fixture
def boss() -> User:
    return user_with("view_job", "view_operation", *ALL, "bulk_any", "approve_operation")


@pytest.fixture
def other() -> User:
    return user_with("view_job", "view_operation", "approve_operation")


@pytest.fixture
def approving(settings: Any) -> Any:
    def above(number: int | None) -> None:
        settings.SCHEDULER = {**settings.SCHEDULER, "approve_above": number}

    return above


def test_what_is_large_waits_until_somebody_else_approves(
    boss: User, other: User, here: Connection, approving: Any
) -> None:
    many(4, group="g")
    approving(3)
    operation = operations.submit(boss, "cancel", LINE, "why")
    assert operation.state == "asked"
    assert finish_off(operation).changed == 0
    with pytest.raises(OperationRefused, match="somebody else approves it"):
        operations.approve(boss, operation.pk)
    with pytest.raises(OperationRefused, match="somebody else approves it"):
        operations.approve(operator.Shell(), operation.pk)
    with pytest.raises(OperationRefused, match="is asked"):
        operations.resume(boss, operation.pk)
    assert finish_off(operation).state == "asked"
    operations.approve(other, operation.pk, "seen the list")
    operation = finish_off(operation)
    assert (operation.state, operation.changed, operation.approver_name) == ("done", 4, other.username)
    action = OperatorAction.objects.get(verb="approve operation")
    assert (action.actor_name, action.reason, action.before, action.after) == (
        other.username, "seen the list", {"state": "asked"}, {"state": "queued"},
    )  # fmt: skip


@pytest.mark.parametrize(("above", "state"), [(None, "queued"), (4, "queued"), (3, "asked"), (0, "asked")])
def test_the_setting_says_from_how_many_on(
    boss: User, here: Connection, approving: Any, above: int | None, state: str
) -> None:
    many(4, group="g")
    approving(above)
    assert operations.preview(boss, "cancel", LINE).must_ask == (state == "asked")
    assert operations.submit(boss, "cancel", LINE, "why").state == state


def test_more_than_was_foreseen_waits_in_the_middle(
    boss: User, other: User, here: Connection, approving: Any
) -> None:
    many(1200, group="g")
    operation = operations.submit(boss, "cancel", LINE, "why")
    approving(600)
    operation = finish_off(operation)
    assert (operation.state, operation.changed) == ("asked", 600)
    assert operation.note == "It has changed 600 jobs; somebody else approves more."
    operations.approve(other, operation.pk)
    operation = finish_off(operation)
    assert (operation.state, operation.changed, operation.note) == ("done", 1200, "")


def test_a_number_that_nobody_knows_waits(
    boss: User, here: Connection, approving: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jobs.search.count import Count

    many(1, group="g")
    approving(100)
    monkeypatch.setattr("jobs.operations.start.count", lambda *args: Count(None, "unknown"))
    assert operations.submit(boss, "cancel", LINE, "why").state == "asked"


def test_to_take_back_needs_nobody(boss: User, here: Connection, approving: Any) -> None:
    many(4, group="g")
    operation = finish_off(operations.submit(boss, "cancel", LINE, "why"))
    approving(2)
    back = finish_off(operations.undo(boss, operation.pk, "a mistake"))
    assert (back.state, back.changed) == ("done", 4)


def test_what_waits_can_be_stopped_and_is_never_approved_then(
    boss: User, other: User, here: Connection, approving: Any
) -> None:
    many(4, group="g")
    approving(3)
    operation = operations.submit(boss, "cancel", LINE, "why")
    operations.stop(boss, operation.pk)
    with pytest.raises(OperationRefused, match="is stopped"):
        operations.approve(other, operation.pk)


def test_who_may_not_approve_is_refused_and_recorded(here: Connection, boss: User, approving: Any) -> None:
    many(4, group="g")
    approving(3)
    operation = operations.submit(boss, "cancel", LINE, "why")
    with pytest.raises(operator.Denied):
        operations.approve(user_with("view_operation", *ALL), operation.pk)
    foreign = user_with("approve_operation", tenants=["acme"])
    with pytest.raises(OperationRefused, match="there is no operation"):
        operations.approve(foreign, operation.pk)
    assert OperatorAction.objects.get(verb="approve operation").result == "denied"
    assert Operation.objects.get().state == "asked"


def test_the_console_asks_and_approves(boss: User, other: User, here: Connection, approving: Any) -> None:
    many(4, group="g")
    approving(3)
    first, second = client_of(boss), client_of(other)
    new = "/admin/jobs/operation/new/cancel/"
    assert "begins when somebody else has approved it" in first.get(new, {"q": LINE}).text
    response = first.post(new, {"q": LINE, "reason": "why", "rate": "10"}, follow=True)
    assert "waits for somebody else to approve it" in messages_of(response)[0]
    operation = Operation.objects.get()
    page = f"/admin/jobs/operation/{operation.pk}/change/"
    assert first.get(page).context["buttons"] == ["stop"]
    assert second.get(page).context["buttons"] == ["approve", "stop"]
    command = f"/admin/jobs/operation/{operation.pk}/command/approve/"
    assert "somebody else approves it" in messages_of(first.post(command, follow=True))[0]
    assert "is queued" in messages_of(second.post(command, {"reason": "fine"}, follow=True))[0]
    assert f"Approved by</dt><dd>{other.username}" in first.get(page).text


def test_a_setting_that_is_none_is_refused() -> None:
    with pytest.raises(NotConfigured, match=r"approve_above.*-1"):
        parse({"approve_above": -1})
    assert parse({"approve_above": None}).approve_above is None


def test_the_pace_is_set_while_it_runs(boss: User, here: Connection) -> None:
    many(30, group="g")
    operation = operations.submit(boss, "cancel", LINE, "why", rate=10)
    client = client_of(boss)
    page, command = (f"/admin/jobs/operation/{operation.pk}/{name}/" for name in ("change", "command/pace"))
    assert "Set the pace" in client.get(page).text
    assert "does 25 jobs a second" in messages_of(client.post(command, {"rate": "25"}, follow=True))[0]
    assert operations.run_chunk() == 25
    action = OperatorAction.objects.get(verb="pace operation")
    assert (action.before, action.after) == ({"rate": 10}, {"rate": 25})
    for wrong in ("", "x", "0", "-5", "99999999999"):
        assert "Nothing was changed" in messages_of(client.post(command, {"rate": wrong}, follow=True))[0]
    finish_off(operation)
    assert "is done" in messages_of(client.post(command, {"rate": "5"}, follow=True))[0]
    assert client_of(user_with("view_operation")).post(command, {"rate": "5"}).status_code == 403
    assert "Set the pace" not in client.get(page).text


def test_the_same_again_is_one_click(boss: User, other: User, here: Connection) -> None:
    many(2, group="g")
    operation = finish_off(operations.submit(boss, "cancel", LINE, "why"))
    page = f"/admin/jobs/operation/{operation.pk}/change/"
    again = client_of(boss).get(page).context["again"]
    many(1, group="g")
    assert client_of(boss).get(again).context["preview"].count.number == 1
    assert client_of(other).get(page).context["again"] == ""


def test_the_overview_tells_who_may_approve_what_waits_for_it(
    boss: User, other: User, here: Connection, approving: Any
) -> None:
    many(4, group="g")
    approving(3)
    pages = {name: client_of(user).get("/admin/jobs/") for name, user in (("boss", boss), ("other", other))}
    assert not any("for your approval" in page.content.decode() for page in pages.values())
    operation = operations.submit(boss, "cancel", LINE, "why")
    remember.forget()
    asked = client_of(other).get("/admin/jobs/").content.decode()
    assert "1 operation waits for your approval." in asked
    assert f"/admin/jobs/operation/{operation.pk}/change/" in asked
    assert "for your approval" not in client_of(boss).get("/admin/jobs/").content.decode()
    onlooker = user_with("view_job", "view_operation")
    assert "for your approval" not in client_of(onlooker).get("/admin/jobs/").content.decode()
    operations.approve(other, operation.pk, "seen")
    remember.forget()
    assert "for your approval" not in client_of(other).get("/admin/jobs/").content.decode()


def test_who_approves_for_some_tenants_is_told_of_these_alone(here: Connection, approving: Any) -> None:
    rights = ("view_job", "view_operation")
    asker, approver, stranger = (
        user_with(*rights, *more, tenants=[slug])
        for more, slug in ((ALL, "acme"), (("approve_operation",), "acme"), (("approve_operation",), "beta"))
    )
    many(4, group="g", tenant="acme")
    approving(3)
    operation = operations.submit(asker, "cancel", LINE, "why")
    assert operation.state == "asked"
    told = {
        user: client_of(user).get("/admin/jobs/").content.decode() for user in (asker, approver, stranger)
    }
    assert "1 operation waits for your approval." in told[approver]
    assert f"/admin/jobs/operation/{operation.pk}/change/" in told[approver]
    assert "for your approval" not in told[asker] + told[stranger]
    operations.submit(user_with(*ALL, tenants=["acme", "beta"]), "cancel", LINE, "both")
    assert "1 operation waits for your approval." in client_of(approver).get("/admin/jobs/").content.decode()
    operations.approve(approver, operation.pk, "seen")
    assert "for your approval" not in client_of(approver).get("/admin/jobs/").content.decode()
