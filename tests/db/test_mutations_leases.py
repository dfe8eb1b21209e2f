"""Every guard of the leases is needed: without it, its check reports a breach. What takes a second session to see is in
tests/concurrency."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobs.leases import door, looks, passed
from tests.db import (
    guards_leases_claim,
    guards_leases_free,
    guards_leases_left,
    guards_leases_limits,
    guards_leases_process,
    guards_leases_rules,
    guards_leases_settle,
)
from tests.mutating import Check, Connection, changes, mutate, notices
from tests.unit.looking import TIME

MUTANTS = {
    **guards_leases_claim.MUTANTS,
    **guards_leases_free.MUTANTS,
    **guards_leases_left.MUTANTS,
    **guards_leases_limits.MUTANTS,
    **guards_leases_process.MUTANTS,
    **guards_leases_rules.MUTANTS,
    **guards_leases_settle.MUTANTS,
}


@pytest.fixture(autouse=True)
def _time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claimers look at their start and when they know nothing, and the time of limits stands still."""
    monkeypatch.setattr(looks, "EVERY", 1e6)
    monkeypatch.setattr(door, "time", TIME)
    monkeypatch.setattr(passed, "time", TIME)


@pytest.mark.parametrize("breaks", MUTANTS, ids=lambda breaks: breaks.__name__)
def test_the_check_passes_with_its_guards(here: Connection, breaks: Check) -> None:
    breaks(here)


@pytest.mark.mutant
@pytest.mark.parametrize(("breaks", "function", "text", "instead"), changes(MUTANTS))
def test_without_the_guard_the_check_reports_a_breach(
    here: Connection,
    breaks: Check,
    function: Callable[..., Any],
    text: str,
    instead: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutate(monkeypatch, function, text, instead)
    assert notices(breaks, here)
