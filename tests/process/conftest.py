from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from tests import commands as commands_of_tests
from tests.commands import Commands, Ledger
from tests.emptying import empty_tables


@pytest.fixture
def transactional_db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Real commits, as pytest-django's fixture of this name, and quicker to clean up after."""
    with django_db_blocker.unblock():
        yield
        connections["default"].close()
        empty_tables()
        connections["default"].close()


@pytest.fixture
def commands(transactional_db: None, tmp_path: Path) -> Iterator[Commands]:
    """Our commands on the test database; all are killed at the end of the test."""
    with commands_of_tests.commands(commands_of_tests.environment(), tmp_path) as started:
        yield started


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")
