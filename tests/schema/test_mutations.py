"""Every guard of a statement is needed: without it, its check reports a breach."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, transaction

import jobs.sql
from jobs.leases import looks
from tests.schema.guards import GUARDS, REPLACED, Check

Connection = psycopg.Connection[Any]
CASES = [(files, text, breaks) for files, guards in GUARDS.items() for text, breaks in guards]


class Mutated:
    """Stands for `importlib.resources` in jobs.sql: the files, without a guard."""

    def __init__(self, removed: dict[str, str]) -> None:
        self.removed, self.name = removed, ""

    def files(self, package: str) -> Mutated:
        return self

    def joinpath(self, name: str) -> Mutated:
        self.name = name.removesuffix(".sql")
        return self

    def read_text(self, encoding: str) -> str:
        text = (Path(jobs.sql.__file__).parent / f"{self.name}.sql").read_text(encoding)
        if removed := self.removed.get(self.name):
            text = text.replace(removed, REPLACED.get(removed, ""))
        return text


@pytest.fixture(autouse=True)
def _no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claimers look at their start and when they know nothing."""
    monkeypatch.setattr(looks, "EVERY", 1e6)


@pytest.fixture
def _fresh() -> Iterator[None]:
    def forget() -> None:
        jobs.sql.load.cache_clear()
        jobs.sql.for_day.cache_clear()

    forget()
    yield
    forget()


@pytest.mark.parametrize(
    "breaks", dict.fromkeys(case[2] for case in CASES), ids=lambda breaks: breaks.__name__
)
def test_the_check_passes_with_its_guard(here: Connection, breaks: Check) -> None:
    breaks(here)


def _removed(files: str, text: str) -> dict[str, str]:
    """By file, the text that is to be removed from it."""
    return dict(zip(files.split("+"), text.split("|") if "+" in files else [text], strict=True))


def test_every_guard_stands_in_its_file() -> None:
    missing = [
        (name, removed)
        for files, text, _ in CASES
        for name, removed in _removed(files, text).items()
        if removed not in Mutated({}).files("").joinpath(f"{name}.sql").read_text("utf-8")
    ]
    assert missing == []


@pytest.mark.mutant
@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize(
    ("files", "text", "breaks"), CASES, ids=[f"{files}: {text.strip()[:40]}" for files, text, _ in CASES]
)
def test_without_the_guard_the_check_reports_a_breach(
    here: Connection, files: str, text: str, breaks: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs.sql, "resources", Mutated(_removed(files, text)))
    with pytest.raises((AssertionError, DatabaseError, psycopg.Error)) as caught, transaction.atomic():
        breaks(here)
    assert not isinstance(caught.value, psycopg.errors.SyntaxError), "the mutant must be a legal statement"
    assert not isinstance(caught.value.__cause__, psycopg.errors.SyntaxError)
