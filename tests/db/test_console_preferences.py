"""What is kept for an operator: with the account, in one statement a session, and never more than can be understood."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.test import RequestFactory

from jobs.console.preferences import KEPT, Preferences, preferences
from jobs.models import Preference
from tests.db.test_admin_tools import client_of, statements, user_with

pytestmark = pytest.mark.django_db
ME, JOBS = "/admin/jobs/job/me/", "/admin/jobs/job/"
CHOSEN = {"zone": "Asia/Tokyo", "refresh": "adaptive", "density": "compact", "keys": "off"}


@pytest.fixture
def maria() -> User:
    return user_with("view_job")


def read(said: Any) -> Preferences:
    request = RequestFactory().get("/")
    request.user, request.session = User(pk=1), SessionStore()
    request.session[KEPT] = said
    return preferences(request)


def test_what_is_kept_is_there_in_every_browser(maria: User) -> None:
    one, two = client_of(maria), client_of(maria)
    assert one.post(ME, CHOSEN).status_code == 302
    for client in (one, two):
        page = client.get(JOBS)
        assert 'data-density="compact"' in page.text
        assert 'data-keys="off"' in page.text
        assert " JST" in client.get(ME).text
    assert 'data-density="comfortable"' in client_of(user_with("view_job")).get(JOBS).text


def test_it_is_read_once_a_session(maria: User) -> None:
    client = client_of(maria)
    asked = [sum('"jobs_preference"' in sql for sql in statements(client, JOBS)) for _ in range(3)]
    assert asked == [1, 0, 0]
    client.post(ME, CHOSEN)
    assert not any('"jobs_preference"' in sql for sql in statements(client, JOBS))


def test_what_is_emptied_is_as_usual_again(maria: User) -> None:
    client = client_of(maria)
    client.post(ME, CHOSEN)
    client.post(ME, {**CHOSEN, "zone": ""})
    assert Preference.objects.get().zone == ""
    assert " UTC" in client.get(ME).text


def test_a_zone_that_is_none_is_refused(maria: User) -> None:
    response = client_of(maria).post(ME, {"zone": "Mars/Olympus"})
    assert "There is no time zone of this name." in response.text
    assert not Preference.objects.exists()


@pytest.mark.parametrize(
    "said",
    [
        None,
        "x",
        [],
        {},
        {"zone": "Mars/Olympus"},
        {"zone": "../../etc/passwd"},
        {"refresh": "0"},
        {"keys": "<script>"},
        {"zone": "x" * 10_000},
        {"zone": "\0"},
        {"unheard": "of"},
    ],
)
def test_what_cannot_be_understood_counts_as_not_said(said: Any) -> None:
    assert read(said) == Preferences()


def test_one_that_is_wrong_leaves_the_others() -> None:
    assert read({"zone": "Mars", "refresh": "60"}) == Preferences(refresh="60")


def test_who_has_no_session_has_none() -> None:
    assert preferences(RequestFactory().get("/")) == Preferences()


def test_an_account_takes_them_along(maria: User) -> None:
    client_of(maria).post(ME, CHOSEN)
    maria.delete()
    assert not Preference.objects.exists()
