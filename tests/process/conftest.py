from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import commands as commands_of_tests
from tests.commands import Commands, Ledger


@pytest.fixture
def commands(transactional_db: None, tmp_path: Path) -> Iterator[Commands]:
    """Our commands on the test database; all are killed at the end of the test."""
    with commands_of_tests.commands(commands_of_tests.environment(), tmp_path) as started:
        yield started


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")
