"""The model holds in every reachable state; each variant that lacks a guard is caught."""

from __future__ import annotations

import pytest

from tests.model.checking import BROKEN, PROPER, Search, check

pytestmark = pytest.mark.model


@pytest.mark.parametrize("search", PROPER, ids=lambda search: search.name)
def test_it_holds(search: Search) -> None:
    found = check(search)
    assert found.errors == 0, found.said
    assert found.complete, found.said
    assert found.states > 1000


@pytest.mark.parametrize("search", BROKEN, ids=lambda search: search.name)
def test_a_missing_guard_is_caught(search: Search) -> None:
    assert check(search).errors > 0
