"""Connections that Django opens for a loop have the patience of the loop's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import OperationalError, connections
from django.db.backends.signals import connection_created

from jobs import db, patience
from jobs.session import Session
from tests.racing import beside

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]


@pytest.fixture
def watched() -> Iterator[None]:
    patience.watch_django(1.0)
    yield
    connection_created.disconnect(dispatch_uid="patience")


def test_a_round_trip_that_outlasts_it_is_cut_and_django_connects_anew(watched: None) -> None:
    def ask() -> tuple[type, int]:
        with connections["default"].cursor() as cursor:
            kind = type(connections["default"].connection)
            with pytest.raises(OperationalError):
                cursor.execute("SELECT pg_sleep(60)")
        connections["default"].close()
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT 7")
            return kind, cursor.fetchone()[0]

    assert beside(ask).result(30) == (Session, 7)


def test_without_it_django_waits_as_long_as_it_takes() -> None:
    def ask() -> type:
        connections["default"].ensure_connection()
        return type(connections["default"].connection)

    assert not issubclass(beside(ask).result(30), Session)


def test_a_session_is_watched_from_its_first_statement_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that fell silent between the greeting and it was waited for for ever."""
    watched: list[bool] = []
    bound = Session.bound_idleness

    def noted(self: Session, seconds: float, *, kept: bool) -> None:
        watched.append(self in patience._watcher._watched)
        bound(self, seconds, kept=kept)

    monkeypatch.setattr(Session, "bound_idleness", noted)
    db.connect(name="punctual test", patience=60.0).close()
    assert watched == [True]
