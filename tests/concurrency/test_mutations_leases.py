"""Every guard of the leases that only a second session shows is needed: without it, its check reports a breach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobs.leases import passed
from tests.concurrency import guards_leases, guards_leases_claim, guards_leases_gate
from tests.concurrency.test_limit_locks import LONG
from tests.mutating import Check, Connection, changes, mutate, notices

pytestmark = pytest.mark.concurrency

MUTANTS = {**guards_leases.MUTANTS, **guards_leases_claim.MUTANTS, **guards_leases_gate.MUTANTS}


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who found something locked does not try again by himself."""
    monkeypatch.setattr(passed, "BUSY_SECONDS", (LONG, LONG))


@pytest.mark.parametrize("breaks", MUTANTS, ids=lambda breaks: breaks.__name__)
def test_the_check_passes_with_its_guards(connection: Connection, breaks: Check) -> None:
    breaks(connection)


@pytest.mark.mutant
@pytest.mark.parametrize(("breaks", "function", "text", "instead"), changes(MUTANTS))
def test_without_the_guard_the_check_reports_a_breach(
    connection: Connection,
    breaks: Check,
    function: Callable[..., Any],
    text: str,
    instead: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutate(monkeypatch, function, text, instead)
    assert notices(breaks, connection)
