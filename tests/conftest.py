from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from jobs.errors import NotConfigured
from tests import commands, server

Connection = psycopg.Connection[Any]

DAYS_BACK, DAYS_AHEAD = 2, 5
SLOW = (
    "process/test_benchmark.py", "process/test_demo.py", "process/test_kill_points.py", "process/test_embedded.py",
    "concurrency/test_stateful.py", "process/", "concurrency/", "schema/", "db/", "",
)  # fmt: skip
"""Where the tests are that take longest, the longest first."""
_session = pytest.StashKey[server.Session]()


def pytest_configure(config: pytest.Config) -> None:
    is_xdist_worker = hasattr(config, "workerinput")
    if not server.GIVEN and not is_xdist_worker and not config.option.collectonly:
        try:
            config.stash[_session] = server.Session()
        except NotConfigured as error:
            raise pytest.UsageError(str(error)) from None
    if name := os.environ.get(server.DATABASE_NAME):
        connections["default"].settings_dict["TEST"]["NAME"] = name


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first, so that no test process is left alone with it at the end."""
    here = Path(__file__).parent

    def place(item: pytest.Item) -> int:
        path = item.path.relative_to(here).as_posix()
        return next(number for number, start in enumerate(SLOW) if path.startswith(start))

    items.sort(key=place)


def pytest_unconfigure(config: pytest.Config) -> None:
    if session := config.stash.get(_session, None):
        session.close()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The test database has the days around today; a test that goes elsewhere in time makes its own. Beside it stands a
    copy that no test has touched: plans depend on what a table has gone through, empty though it is again."""
    from jobs.partitions import ensure_days

    today, making = datetime.now(UTC).date(), connections["default"].creation
    with django_db_blocker.unblock():
        ensure_days(today - timedelta(days=DAYS_BACK), today + timedelta(days=DAYS_AHEAD))
        making.clone_test_db(server.UNTOUCHED, verbosity=0)
    yield
    with django_db_blocker.unblock():
        making.destroy_test_db(suffix=server.UNTOUCHED, verbosity=0)


@pytest.fixture(autouse=True)
def _forget() -> None:
    """What a process remembers of the database does not outlive a flush."""
    from jobs import partitions, tenants
    from jobs.console import remember

    remember.forget()
    tenants.forget()
    partitions.known.clear()


@pytest.fixture
def transactional_db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Real commits, as pytest-django's fixture of this name, and quicker to clean up after."""
    from jobs.models import Tenant
    from tests.emptying import empty_tables

    with django_db_blocker.unblock():
        if Tenant.objects.exists():  # made beside the transaction of a test that was rolled back
            empty_tables()
        connections["default"].close()
        yield
        connections["default"].close()
        empty_tables()
        connections["default"].close()


@pytest.fixture
def connection(transactional_db: None) -> Iterator[Connection]:
    """A connection of our own beside Django's, in a test with real commits."""
    from tests.factories import own_connection

    with own_connection() as connection:
        yield connection


@pytest.fixture
def here(db: None) -> Connection:
    """Django's own connection, inside the transaction that the test rolls back: the loops' functions work on it, and
    nothing needs to be flushed. `now()` stands still in it: `factories.come_due`."""
    from tests.factories import DjangosConnection

    return cast(Connection, DjangosConnection())


@pytest.fixture
def database_url(transactional_db: None) -> str:
    """The address of the test database, for processes and connections beside Django's."""
    return commands.database_url()


@pytest.fixture
def process_env(database_url: str) -> dict[str, str]:
    """The environment of a subprocess that works on the test database."""
    return {**os.environ, "DATABASE_URL": database_url, "DJANGO_SETTINGS_MODULE": "tests.settings"}
