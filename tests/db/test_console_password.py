"""Re-authentication: what is large asks for the password when it was not given lately, and goes on from there."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.models import User
from django.test import Client

from jobs import operations, operator
from jobs.conf import parse
from jobs.console import password
from jobs.errors import NotConfigured
from jobs.models import Operation, OperatorAction, Queue, Tenant
from tests.db.test_admin_tools import client_of, messages_of, user_with
from tests.db.test_operations import many
from tests.factories import Connection

pytestmark = pytest.mark.django_db
WORD = "correct-horse-battery"
ALL = ("view_tenant", "change_tenant", "delete_tenant", "view_queue", "change_queue", "add_queue", "delete_queue",
       "view_operation", "cancel_job", "bulk_job", "bulk_any", "approve_operation")  # fmt: skip
LIMITS = {"weight": "1", "max_running": "20", "rate_per": "second"}


class Directory(BaseBackend):
    """Passwords that are kept elsewhere."""

    def authenticate(self, request: Any, username: str = "", password: str = "", **kwargs: Any) -> Any:
        return User.objects.filter(username=username).first() if password == "from-the-directory" else None

    def get_user(self, user_id: int) -> Any:
        return User.objects.filter(pk=user_id).first()


@pytest.fixture
def acme() -> Tenant:
    return Tenant.objects.get_or_create(slug="acme")[0]


@pytest.fixture
def user(settings: Any) -> User:
    settings.SCHEDULER = {**settings.SCHEDULER, "password_age": 900}
    found = user_with(*ALL)
    found.set_password(WORD)
    found.save()
    return found


@pytest.fixture
def client(user: User) -> Client:
    """Logged in longer ago than that."""
    return stale(client_of(user))


def stale(client: Client) -> Client:
    session = client.session
    session[password.KEPT] -= 901
    session.save()
    return client


def page_of(tenant: Tenant) -> str:
    return f"/admin/jobs/tenant/{tenant.pk}/change/"


def is_asked(response: Any) -> bool:
    return 'name="confirm_password"' in response.text


def hidden(response: Any) -> dict[str, str]:
    """What the page sends again."""
    found = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', response.text)
    return {name: html.unescape(value) for name, value in found if name != "csrfmiddlewaretoken"}


def test_it_is_not_asked_for_by_default(acme: Tenant) -> None:
    client = client_of(user_with(*ALL))
    assert password.KEPT not in client.session
    assert client.post(page_of(acme), LIMITS).status_code == 302


def test_who_has_just_logged_in_is_not_asked(user: User, acme: Tenant) -> None:
    assert client_of(user).post(page_of(acme), LIMITS).status_code == 302


def test_what_was_sent_goes_on_with_the_password(client: Client, acme: Tenant) -> None:
    sent = {**LIMITS, "temporary_max_running": "", "_continue": '"><i>'}
    asked = client.post(page_of(acme), sent)
    assert (asked.status_code, is_asked(asked)) == (200, True)
    assert Tenant.objects.get(pk=acme.pk).max_running is None
    assert not OperatorAction.objects.exists()
    assert hidden(asked) == sent
    assert f'action="{page_of(acme)}"' in asked.text
    done = client.post(page_of(acme), {**hidden(asked), "confirm_password": WORD})
    assert done.status_code == 302
    assert Tenant.objects.get(pk=acme.pk).max_running == 20
    assert client.post(page_of(acme), {**LIMITS, "max_running": "30"}).status_code == 302
    assert is_asked(stale(client).post(page_of(acme), LIMITS))


def test_a_session_from_before_the_setting_is_asked(client: Client, acme: Tenant) -> None:
    for left in (None, "soon", 10.0**12):
        session = client.session
        session[password.KEPT] = left
        session.save()
        assert is_asked(client.post(page_of(acme), LIMITS))


def test_to_look_asks_for_nothing(client: Client, acme: Tenant) -> None:
    assert not is_asked(client.get(page_of(acme)))
    assert not is_asked(client.get("/admin/jobs/operation/new/cancel/", {"q": "group:g"}))


def test_a_wrong_one_changes_nothing_and_is_recorded(client: Client, user: User, acme: Tenant) -> None:
    response = client.post(page_of(acme), {**LIMITS, "confirm_password": "wrong-horse"})
    assert (response.status_code, is_asked(response)) == (403, True)
    assert "This is not your password" in response.text
    assert "wrong-horse" not in response.text
    assert hidden(response) == LIMITS
    action = OperatorAction.objects.get()
    assert (action.verb, action.result, action.actor_name) == ("confirm password", "denied", user.username)
    assert (action.via, action.target) == ("console", {"page": page_of(acme)})
    assert Tenant.objects.get(pk=acme.pk).max_running is None


def test_an_empty_one_is_asked_for_again_and_is_no_try(client: Client, acme: Tenant) -> None:
    assert is_asked(client.post(page_of(acme), {**LIMITS, "confirm_password": ""}))
    assert not OperatorAction.objects.exists()


def test_after_five_wrong_ones_no_other_is_looked_at(client: Client, user: User, acme: Tenant) -> None:
    right = {**LIMITS, "confirm_password": WORD}
    for _ in range(password.TRIES):
        assert client.post(page_of(acme), {**right, "confirm_password": "wrong-horse"}).status_code == 403
    response = client.post(page_of(acme), right)
    assert (response.status_code, response["Retry-After"]) == (429, "900")
    assert Tenant.objects.get(pk=acme.pk).max_running is None
    assert OperatorAction.objects.count() == password.TRIES
    other = user_with(*ALL)
    other.set_password(WORD)
    other.save()
    assert stale(client_of(other)).post(page_of(acme), right).status_code == 302
    assert client_of(user).post(page_of(acme), LIMITS).status_code == 302  # the login counts


def test_wrong_ones_of_long_ago_do_not_count(
    client: Client, acme: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(password.TRIES):
        client.post(page_of(acme), {**LIMITS, "confirm_password": "wrong-horse"})
    monkeypatch.setattr(password, "TRIES_IN", timedelta())
    assert client.post(page_of(acme), {**LIMITS, "confirm_password": WORD}).status_code == 302


def test_the_password_goes_no_further_than_the_question(client: Client, user: User, acme: Tenant) -> None:
    for word in ("wrong-horse", WORD):
        response = client.post(page_of(acme), {**LIMITS, "confirm_password": word})
        assert "confirm_password" not in response.wsgi_request.POST
    assert WORD not in str(list(OperatorAction.objects.values()))
    assert (
        not client_of(user)
        .post(page_of(acme), {**LIMITS, "confirm_password": WORD})
        .wsgi_request.POST.get("confirm_password")
    )


def test_a_password_that_is_kept_elsewhere_does(client: Client, acme: Tenant, settings: Any) -> None:
    settings.AUTHENTICATION_BACKENDS = [
        "django.contrib.auth.backends.ModelBackend",
        f"{Directory.__module__}.Directory",
    ]
    right = {**LIMITS, "confirm_password": "from-the-directory"}
    assert client.post(page_of(acme), right).status_code == 302


def test_every_change_of_limits_asks(client: Client, acme: Tenant) -> None:
    queue = Queue.objects.create(name="q", max_running=3)
    _, action = operator.limit(operator.Shell(), {"max_running": 5}, tenant="acme")
    for url in (
        f"/admin/jobs/queue/{queue.pk}/change/",
        f"/admin/jobs/queue/{queue.pk}/delete/",
        "/admin/jobs/queue/add/",
        f"/admin/jobs/tenant/{acme.pk}/delete/",
        f"/admin/jobs/operatoraction/{action.pk}/undo/",
    ):
        assert is_asked(client.post(url, {"post": "yes", "name": "x", "rate_per": "second"})), url
    assert Queue.objects.get().max_running == 3
    assert Tenant.objects.get(pk=acme.pk).max_running == 5


def test_an_operation_begins_with_the_password_and_ends_without(client: Client, here: Connection) -> None:
    many(4, group="g")
    new = "/admin/jobs/operation/new/cancel/"
    asked = client.post(new, {"q": "group:g due:today..+2d", "reason": "recalled", "rate": "10"})
    assert is_asked(asked)
    assert f'href="{new}?q=group%3Ag+due%3Atoday..%2B2d">Back' in asked.text
    assert not Operation.objects.exists()
    done = client.post(new, {**hidden(asked), "confirm_password": WORD}, follow=True)
    operation = Operation.objects.get()
    assert f"Operation {operation.pk} was started." in messages_of(done)
    stale(client)
    command = f"/admin/jobs/operation/{operation.pk}/command"
    assert "is paused" in messages_of(client.post(f"{command}/pause/", follow=True))[0]
    for verb in ("resume", "pace", "approve", "undo"):
        assert is_asked(client.post(f"{command}/{verb}/", {"rate": "5", "reason": "because"}))
    assert Operation.objects.get().state == "paused"
    assert "is stopped" in messages_of(client.post(f"{command}/stop/", follow=True))[0]


def test_a_form_that_is_wrong_is_told_before_the_password_is_asked(client: Client, here: Connection) -> None:
    many(1, group="g")
    response = client.post("/admin/jobs/operation/new/cancel/", {"q": "group:g due:today..+2d", "rate": "10"})
    assert not is_asked(response)
    assert "reason" in response.context["form"].errors


def test_code_and_commands_are_not_asked(user: User, here: Connection) -> None:
    many(1, group="g")
    assert operations.submit(user, "cancel", "group:g due:today..+2d", "recalled").state == "queued"


def test_an_age_that_is_none_is_refused() -> None:
    assert parse({}).password_age is None
    assert parse({"password_age": 900}).password_age == timedelta(minutes=15)
    for wrong in (0, -1, True, "900"):
        with pytest.raises(NotConfigured, match="password_age"):
            parse({"password_age": wrong})
