"""Every guard of rings, looks and stop flags is needed: without it, its check reports a breach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobs.leases import looks
from tests.mutating import Check, changes, mutate, notices
from tests.unit import guards_context, guards_looks, guards_ring
from tests.unit.looking import TIME

MUTANTS = {**guards_ring.MUTANTS, **guards_looks.MUTANTS, **guards_context.MUTANTS}


@pytest.fixture(autouse=True)
def _time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "time", TIME)


@pytest.mark.parametrize("breaks", MUTANTS, ids=lambda breaks: breaks.__name__)
def test_the_check_passes_with_its_guards(breaks: Check) -> None:
    breaks()


@pytest.mark.mutant
@pytest.mark.parametrize(("breaks", "function", "text", "instead"), changes(MUTANTS))
def test_without_the_guard_the_check_reports_a_breach(
    breaks: Check,
    function: Callable[..., Any],
    text: str,
    instead: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutate(monkeypatch, function, text, instead)
    assert notices(breaks)
