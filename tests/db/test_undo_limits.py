"""A changed limit is taken back from its message, its line in the audit and the command line, unless somebody was there
in between."""

from __future__ import annotations

import re
from datetime import timedelta, timezone
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from jobs import clock, operator, undoing
from jobs.errors import ActionNotFound, ChangedSince, InvalidValue, UnknownTenant
from jobs.models import OperatorAction, Queue, Tenant, TenantQueueLimit
from jobs.operator import Shell
from tests.db.test_admin_tools import messages_of, operator_with, user_with

pytestmark = pytest.mark.django_db
AUDIT = "/admin/jobs/operatoraction/"


@pytest.fixture
def acme() -> Tenant:
    return Tenant.objects.get_or_create(slug="acme")[0]


def changed(changes: dict[str, Any], **names: str) -> OperatorAction:
    return operator.limit(Shell(), changes, **names)[1]


def undo_url(action: OperatorAction) -> str:
    return f"{AUDIT}{action.pk}/undo/"


def test_what_was_before_holds_again_and_the_audit_says_of_which_change(acme: Tenant) -> None:
    changed({"max_running": 5, "weight": 3}, tenant="acme")
    action = changed({"max_running": 20, "rate": 10, "rate_per": "minute"}, tenant="acme")
    row, undone = undoing.undo(Shell(), action.pk, "a mistake")
    acme.refresh_from_db()
    assert (row, acme.max_running, acme.weight, acme.rate, acme.rate_per) == (acme, 5, 3, None, "second")
    assert undone.target == {"tenant": "acme", "action": action.pk}
    assert (undone.verb, undone.reason, undone.tenant_id) == ("undo limit", "a mistake", acme.pk)
    assert (undone.before, undone.after) == (action.after, action.before)


def test_what_was_taken_back_can_be_put_back(acme: Tenant) -> None:
    action = changed({"max_running": 20}, tenant="acme")
    _, undone = undoing.undo(Shell(), action.pk)
    undoing.undo(Shell(), undone.pk)
    acme.refresh_from_db()
    assert acme.max_running == 20


@pytest.mark.parametrize("since", [{"max_running": 30}, {"max_running": None}, {"weight": 2}])
def test_nothing_is_done_when_somebody_has_changed_it_since(acme: Tenant, since: dict[str, Any]) -> None:
    action = changed({"max_running": 20, "weight": 4}, tenant="acme")
    changed(since, tenant="acme")
    count = OperatorAction.objects.count()
    stands = Tenant.objects.filter(pk=acme.pk).values("max_running", "weight").get()
    with pytest.raises(ChangedSince, match=r"somebody has changed this since: .* is .*, not"):
        undoing.undo(Shell(), action.pk)
    assert Tenant.objects.filter(pk=acme.pk).values("max_running", "weight").get() == stands
    assert OperatorAction.objects.count() == count


def test_what_else_was_changed_since_stays(acme: Tenant) -> None:
    action = changed({"max_running": 20}, tenant="acme")
    changed({"weight": 7}, tenant="acme")
    undoing.undo(Shell(), action.pk)
    acme.refresh_from_db()
    assert (acme.max_running, acme.weight) == (None, 7)


def test_a_limit_for_a_while_is_taken_back_whatever_zone_it_was_given_in(acme: Tenant) -> None:
    first, second = (clock.now() + timedelta(hours=hours) for hours in (1, 2))
    changed({"temporary_max_running": 3, "temporary_until": first}, tenant="acme")
    action = changed(
        {"temporary_max_running": 9, "temporary_until": second.astimezone(timezone(timedelta(hours=5)))},
        tenant="acme",
    )
    undoing.undo(Shell(), action.pk)
    acme.refresh_from_db()
    assert (acme.temporary_max_running, acme.temporary_until) == (3, first)
    with pytest.raises(ChangedSince, match="temporary until is"):
        undoing.undo(Shell(), action.pk)


def test_a_tenant_in_a_queue_loses_the_limit_that_it_did_not_have(acme: Tenant) -> None:
    action = changed({"max_running": 2}, tenant="acme", queue="q")
    undoing.undo(Shell(), action.pk)
    assert not TenantQueueLimit.objects.exists()
    lifted = changed({"max_running": 3}, tenant="acme", queue="q")
    lifted = changed({"max_running": None}, tenant="acme", queue="q")
    undoing.undo(Shell(), lifted.pk)
    assert TenantQueueLimit.objects.get().max_running == 3


def test_a_queues_share_is_taken_back(acme: Tenant) -> None:
    changed({"noisy_share": 0.7}, queue="q")
    action = changed({"noisy_share": 0.35, "max_running": 4}, queue="q")
    undoing.undo(Shell(), action.pk)
    queue = Queue.objects.get()
    assert (queue.noisy_share, queue.max_running) == (0.7, None)


def test_what_does_not_fit_to_the_rest_any_more_is_said(acme: Tenant) -> None:
    changed({"rate": 5, "burst": 9}, tenant="acme")
    action = changed({"burst": None}, tenant="acme")
    changed({"rate": None}, tenant="acme")
    with pytest.raises(InvalidValue, match=r"^burst: "):
        undoing.undo(Shell(), action.pk)
    acme.refresh_from_db()
    assert acme.burst is None


def test_the_limits_of_a_tenant_that_is_gone_stay_gone(acme: Tenant) -> None:
    action = changed({"max_running": 2}, tenant="acme")
    Tenant.objects.filter(pk=acme.pk).update(retired_at=clock.now())
    with pytest.raises(UnknownTenant):
        undoing.undo(Shell(), action.pk)


def test_other_actions_are_no_changes_of_limits(acme: Tenant) -> None:
    denied = user_with("view_tenant")
    with pytest.raises(operator.Denied):
        operator.limit(denied, {"max_running": 1}, tenant="acme")
    retry = OperatorAction.objects.create(verb="retry", actor_name="x")
    for pk in (retry.pk, OperatorAction.objects.get(verb="limit", result="denied").pk, 10**30):
        with pytest.raises(ActionNotFound):
            undoing.undo(Shell(), pk)


def test_who_may_not_change_it_may_not_take_it_back(acme: Tenant) -> None:
    tenants, queues = changed({"max_running": 2}, tenant="acme"), changed({"max_running": 2}, queue="q")
    for user, action in ((user_with("change_queue"), tenants), (user_with("change_tenant"), queues)):
        with pytest.raises(operator.Denied):
            undoing.undo(user, action.pk)
    assert OperatorAction.objects.filter(verb="undo limit", result="denied").count() == 2
    assert Tenant.objects.get(pk=acme.pk).max_running == 2


def test_what_was_done_to_foreign_tenants_and_to_queues_is_not_there_for_who_sees_some(acme: Tenant) -> None:
    own, queue = changed({"max_running": 2}, tenant="acme"), changed({"max_running": 2}, queue="q")
    pair = changed({"max_running": 2}, tenant="acme", queue="q")
    member = user_with("change_tenant", "change_queue", tenants=["acme"])
    foreign = user_with("change_tenant", "change_queue", tenants=["beta"])
    for user, action in ((foreign, own), (foreign, pair), (member, queue)):
        with pytest.raises(ActionNotFound):
            undoing.undo(user, action.pk)
    for action in (pair, own):
        undoing.undo(member, action.pk)
    assert operator_with("change_tenant", tenants=["beta"]).get(undo_url(own)).status_code == 404


def test_the_message_after_a_change_leads_to_the_way_back(acme: Tenant) -> None:
    client = operator_with("view_tenant", "change_tenant")
    page = f"/admin/jobs/tenant/{acme.pk}/change/"
    form = {"weight": "1", "max_running": "20", "rate_per": "second"}
    response = client.post(page, form, follow=True)
    found = re.search(r'The limits were changed\. <a href="([^"]+)">Undo …</a>', response.text)
    assert found
    asked = client.get(found[1])
    assert "max running: 20 → unlimited" in asked.text
    assert Tenant.objects.get(pk=acme.pk).max_running == 20
    response = client.post(found[1], {"reason": "too much"}, follow=True)
    assert response.redirect_chain == [(page, 302)]
    assert "The limits were changed." in messages_of(response)[0]
    action = OperatorAction.objects.get(verb="undo limit")
    assert (action.via, action.reason) == ("console", "too much")
    assert Tenant.objects.get(pk=acme.pk).max_running is None
    again = client.post(found[1], follow=True)
    assert (
        "Nothing was changed: somebody has changed this since: max running is empty, not 20."
        in messages_of(again)
    )


def test_a_change_of_a_queue_is_taken_back_to_its_page() -> None:
    queue = Queue.objects.create(name="q", max_running=3)
    client = operator_with("change_queue")
    client.post(f"/admin/jobs/queue/{queue.pk}/change/", {"max_running": "0", "rate_per": "second"})
    response = client.post(undo_url(OperatorAction.objects.get()), follow=True)
    assert response.redirect_chain == [(f"/admin/jobs/queue/{queue.pk}/change/", 302)]
    queue.refresh_from_db()
    assert queue.max_running == 3


def test_the_audit_offers_it_to_who_may(admin_client: Client, acme: Tenant) -> None:
    action = changed({"max_running": 20}, tenant="acme")
    page = f"{AUDIT}{action.pk}/change/"
    assert f'href="{undo_url(action)}"' in admin_client.get(page).text
    assert "max running: unlimited → 20" in admin_client.get(page).text
    _, undone = undoing.undo(Shell(), action.pk)
    assert f'<a href="{page}">action {action.pk}</a>' in admin_client.get(f"{AUDIT}{undone.pk}/change/").text
    onlooker = operator_with("view_operatoraction")
    assert undo_url(action) not in onlooker.get(page).text
    assert onlooker.get(undo_url(action)).status_code == 403
    retry = OperatorAction.objects.create(verb="retry", actor_name="x")
    assert "Undo this change" not in admin_client.get(f"{AUDIT}{retry.pk}/change/").text
    assert admin_client.get(undo_url(retry)).status_code == 404


def test_the_command_takes_back_by_number(acme: Tenant) -> None:
    out = StringIO()
    call_command("jobs", "limits", "--tenant", "acme", "--max-running", "5", stdout=out)
    action = OperatorAction.objects.get()
    assert f"(action {action.pk})" in out.getvalue()
    call_command("jobs", "limits", "--undo", str(action.pk), "--reason", "oops", stdout=out)
    assert Tenant.objects.get(pk=acme.pk).max_running is None
    assert OperatorAction.objects.latest("id").reason == "oops"
    with pytest.raises(CommandError, match="changed this since"):
        call_command("jobs", "limits", "--undo", str(action.pk), stdout=out)
    with pytest.raises(CommandError, match="takes nothing beside it"):
        call_command("jobs", "limits", "--undo", str(action.pk), "--tenant", "acme", stdout=out)
