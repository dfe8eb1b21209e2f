"""The storm's witness of who is alive: whom it cannot see any more is dead, and its own end is never silent."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from tests.commands import is_alive
from tests.storm.census import Census
from tests.storm.fleet import Fleet


@pytest.mark.parametrize("error", [FileNotFoundError, ProcessLookupError])
def test_who_dies_while_being_looked_at_is_dead(
    error: type[OSError], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_text(self: Path) -> str:
        raise error

    monkeypatch.setattr(Path, "read_text", read_text)
    assert not is_alive(1)


class Broken:
    def of(self, kind: str) -> Any:
        raise LookupError(kind)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_census_that_has_died_says_so() -> None:
    census = Census(cast(Fleet, Broken()), {})
    census.start()
    census._thread.join()
    with pytest.raises(RuntimeError, match="census has died"):
        census.end()


def test_a_census_that_looks_ends_quietly() -> None:
    class Nobody:
        def of(self, kind: str) -> Any:
            return []

    census = Census(cast(Fleet, Nobody()), {})
    census.start()
    census.end()
