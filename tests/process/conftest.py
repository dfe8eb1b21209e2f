from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from tests import commands as commands_of_tests
from tests.commands import Commands, Ledger
from tests.process.own_server import own_server


@pytest.fixture
def commands(transactional_db: None, tmp_path: Path) -> Iterator[Commands]:
    """Our commands on the test database; all are killed at the end of the test."""
    with commands_of_tests.commands(commands_of_tests.environment(), tmp_path) as started:
        yield started


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


@pytest.fixture
def data(django_db_blocker: DjangoDbBlocker) -> Iterator[Path]:
    """The data of a server of the test's own, under the alias `own`."""
    with own_server(django_db_blocker) as data:
        yield data
