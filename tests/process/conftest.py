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
def commands(process_env: dict[str, str], tmp_path: Path) -> Iterator[Commands]:
    """Our commands on the test database, with a short lease and grace; all are killed at the end of the test."""
    env = {**process_env, "SCHEDULER_LEASE": "3", "SCHEDULER_GRACE": "2"}
    with commands_of_tests.commands(env, tmp_path) as started:
        yield started


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")
