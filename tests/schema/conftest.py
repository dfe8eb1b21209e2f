from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from functools import cache
from itertools import count
from typing import Any

import psycopg
import pytest
from django.db import connections
from psycopg import sql
from pytest_django import DjangoDbBlocker, Settings

from jobs import clock, db
from jobs.partitions import day_of, ensure
from tests.schema.days import RETENTION, expiry
from tests.server import UNTOUCHED

Connection = psycopg.Connection[Any]

_numbers = count(8)


@cache
def _today() -> date:
    """That of the first test: counted from another one, a day would come again."""
    return day_of(clock.now())


@pytest.fixture(scope="module")
def own_database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """A copy of the test database as it was made, for one module, which may take it apart: Django and our own
    connections go there. Commits are real; what they leave behind goes with the copy."""
    settings = connections["default"].settings_dict
    original = settings["NAME"]
    copy = f"{original}_copy"
    names = {"copy": sql.Identifier(copy), "untouched": sql.Identifier(f"{original}_{UNTOUCHED}")}
    with django_db_blocker.unblock():
        try:
            _administer(sql.SQL("DROP DATABASE IF EXISTS {copy} WITH (FORCE)").format(**names))
            _administer(sql.SQL("CREATE DATABASE {copy} TEMPLATE {untouched}").format(**names))
            settings["NAME"] = copy
            yield copy
        finally:
            connections["default"].close()
            settings["NAME"] = original
            _administer(sql.SQL("DROP DATABASE IF EXISTS {copy} WITH (FORCE)").format(**names))


@pytest.fixture
def transactional_db(own_database: str) -> None:
    """In this folder a test with real commits works in its module's copy, and nothing is flushed after it. (This name
    is how pytest-django knows that the test database is needed.)"""


@pytest.fixture
def old(connection: Connection, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[date]:
    """A day of the past that may still get jobs and that no other test has touched."""
    settings.SCHEDULER = {**settings.SCHEDULER, "retention": RETENTION}
    monkeypatch.setattr(expiry, "LONG_TRANSACTION", timedelta(minutes=5))
    day = _today() - timedelta(days=next(_numbers))
    ensure([day])
    yield day
    connection.execute("TRUNCATE jobs_queueentry")


def _administer(statement: sql.Composed) -> None:
    settings = connections["default"].settings_dict
    connections["default"].close()  # nobody may be connected to a database that is copied
    name, settings["NAME"] = settings["NAME"], "postgres"
    try:
        with db.connect(name="punctual test") as connection:
            connection.execute(statement)
    finally:
        settings["NAME"] = name
