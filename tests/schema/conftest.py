from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connections
from psycopg import sql
from pytest_django import DjangoDbBlocker

from jobs import db


@pytest.fixture(scope="module")
def own_database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """A copy of the test database for one module, which may take it apart: Django and our own connections go there.
    Commits are real; what they leave behind goes with the copy."""
    settings = connections["default"].settings_dict
    original = settings["NAME"]
    copy = f"{original}_copy"
    names = {"copy": sql.Identifier(copy), "original": sql.Identifier(original)}
    with django_db_blocker.unblock():
        try:
            _administer(sql.SQL("DROP DATABASE IF EXISTS {copy} WITH (FORCE)").format(**names))
            _administer(sql.SQL("CREATE DATABASE {copy} TEMPLATE {original}").format(**names))
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


def _administer(statement: sql.Composed) -> None:
    settings = connections["default"].settings_dict
    connections["default"].close()  # nobody may be connected to a database that is copied
    name, settings["NAME"] = settings["NAME"], "postgres"
    try:
        with db.connect(name="punctual test") as connection:
            connection.execute(statement)
    finally:
        settings["NAME"] = name
