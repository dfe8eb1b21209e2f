"""Two pages of one user are read at once; a third is told to come back."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from jobs import clock
from jobs.console import places, remember
from jobs.search import guard
from tests.db.test_admin_tools import FAILED, JOBS, VIEW, client_of, page_of, user_with
from tests.factories import Connection, own_connection, schedule
from tests.racing import beside
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db
ERRORS = f"{JOBS}errors/"
PATIENT = timedelta(seconds=60)


@pytest.fixture
def user(connection: Connection) -> User:
    clock.now()
    return user_with(*VIEW, "cancel_job", "bulk_job")


@pytest.fixture
def taken(
    connection: Connection, user: User, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., None]]:
    """Takes places of the user elsewhere, until the test ends."""
    monkeypatch.setattr(places, "PATIENCE", timedelta(milliseconds=20))
    with connection.transaction(force_rollback=True):

        def take(*numbers: int) -> None:
            for n in numbers:
                connection.execute("SELECT pg_advisory_xact_lock(%s)", [places.key(user, n)])

        yield take


def locks(connection: Connection, *, granted: bool = True) -> int:
    """Places that somebody has, or waits for."""
    row = connection.execute(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted = %s AND objsubid = 1 "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        [granted],
    ).fetchone()
    assert row
    count: int = row[0]
    return count


def test_the_third_page_of_a_slow_database_is_told_to_come_back(
    connection: Connection, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "PATIENCE", PATIENT)
    monkeypatch.setattr(places, "PATIENCE", timedelta(milliseconds=20))
    other = client_of(user_with(*VIEW))
    with connection.transaction():
        connection.execute("LOCK TABLE jobs_outcome IN ACCESS EXCLUSIVE MODE")
        reading = [beside(lambda: client_of(user).get(ERRORS).status_code) for _ in range(places.AT_ONCE)]
        wait_until(lambda: locks(connection) == places.AT_ONCE)
        third = client_of(user).get(ERRORS, {"span": "24h"})
        unlike = beside(lambda: other.get(ERRORS).status_code)
        wait_until(lambda: locks(connection) == places.AT_ONCE + 1)
    assert (third.status_code, third["Retry-After"]) == (429, "2")
    assert "Other pages of yours are still being read" in third.text
    assert 'href="?span=24h">Try again' in third.text
    assert [page.result(60) for page in (*reading, unlike)] == [200, 200, 200]
    assert locks(connection) == 0


def asks(client: Client, job: Any) -> dict[str, Any]:
    return {
        "jobs": client.get(JOBS, {"q": "type:test.noop"}),
        "failed": client.get(FAILED),
        "job": client.get(page_of(job)),
        "part": client.get(page_of(job), {"_live": "1"}),
        "tenant": client.get(f"/admin/jobs/tenant/{job.tenant_id}/change/"),
        "preview": client.get("/admin/jobs/operation/new/cancel/", {"q": "type:test.noop"}),
    }


def test_every_page_that_searches_has_a_place_or_says_so(taken: Callable[..., None], user: User) -> None:
    job, client = schedule(), client_of(user)
    taken(0)
    assert {name: page.status_code for name, page in asks(client, job).items()} == dict.fromkeys(
        asks(client, job), 200
    )
    taken(1)
    for name, page in asks(client, job).items():
        assert (page.status_code, page["Retry-After"]) == (429, "2"), name
        assert "still being read" in page.text, name
        assert ("<html" in page.text) == (name != "part")
    search = client.get(JOBS, {"q": "type:test.noop"})
    assert search.context["cl"].form.text == "type:test.noop"
    assert "All of it was looked at" not in search.text


def test_the_overview_says_it_in_its_place(taken: Callable[..., None], user: User) -> None:
    taken(0, 1)
    remember.forget()
    assert "still being read" in client_of(user).get("/admin/jobs/").text


def test_a_page_that_was_refused_comes_when_a_place_is_free(taken: Callable[..., None], user: User) -> None:
    client = client_of(user)
    with own_connection() as another:
        with another.transaction():
            another.execute("SELECT pg_advisory_xact_lock(%s)", [places.key(user, 0)])
            taken(1)
            assert client.get(ERRORS).status_code == 429
        assert client.get(ERRORS).status_code == 200


def test_a_request_that_dies_leaves_no_place_taken(taken: Callable[..., None], user: User) -> None:
    client, dying = client_of(user), own_connection()
    dying.execute("BEGIN")
    dying.execute("SELECT pg_advisory_xact_lock(%s)", [places.key(user, 0)])
    taken(1)
    assert client.get(ERRORS).status_code == 429
    with socket.socket(fileno=os.dup(dying.fileno())) as wire:
        wire.shutdown(socket.SHUT_RDWR)  # without a word to the server
    wait_until(lambda: client.get(ERRORS).status_code == 200)
    dying.close()


def test_an_error_in_a_page_leaves_no_place_taken(
    connection: Connection, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr("jobs.console.changelist.find", broken)
    client = client_of(user)
    client.raise_request_exception = False
    assert client.get(JOBS).status_code == 500
    assert locks(connection) == 0


def test_a_page_waits_a_moment_for_its_place(
    connection: Connection, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "PATIENCE", PATIENT)
    with connection.transaction():
        for n in range(places.AT_ONCE):
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [places.key(user, n)])
        page = beside(lambda: client_of(user).get(ERRORS).status_code)
        wait_until(lambda: locks(connection, granted=False) == 1)
    assert page.result(60) == 200


def test_a_place_is_of_the_transaction_and_never_of_the_session(connection: Connection, user: User) -> None:
    client = client_of(user)
    for _ in range(5):
        assert client.get(ERRORS).status_code == 200
        assert locks(connection) == 0


def test_places_of_users_differ(user: User) -> None:
    other = user_with("view_job")
    keys = {places.key(each, n) for each in (user, other) for n in range(places.AT_ONCE)}
    assert len(keys) == 2 * places.AT_ONCE
    assert all(-(2**63) <= key < 2**63 for key in keys)
