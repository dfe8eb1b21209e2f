"""The calendar of checkcron agrees with the vectors, and owes nothing to the one it checks."""

from __future__ import annotations

import ast
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs import almanac
from jobs.cron import Cron
from tests.unit.test_cron_vectors import GOLDEN

LONGEST = timedelta(days=70)
"""What a minute walk can do in no time."""
EVERY_DST = ("cron", "skip", "literal")


def walked(expression: str, tz: str, start: datetime, end: datetime, dst: str = "cron") -> list[datetime]:
    return almanac.expected(
        expression=expression, tz=tz, dst=dst, every=None, anchor=start, run_at=None, start=start, end=end
    )


@pytest.mark.parametrize("row", GOLDEN, ids=[row["id"] for row in GOLDEN])
def test_it_agrees_with_every_golden_row(row: dict[str, str]) -> None:
    after = datetime.fromisoformat(row["after"])
    fires = [datetime.fromisoformat(text) for text in row["expected"].split("|")]
    near = [fire for fire in fires if fire - after <= LONGEST]
    end = near[-1] if near else min(fires[0] - timedelta(seconds=1), after + LONGEST)
    assert walked(row["expression"], row["timezone"], after, end) == near


@pytest.mark.parametrize("dst", EVERY_DST)
@pytest.mark.parametrize("text", ["30 2 * * *", "*/20 1-3 * * *", "7 * * * *", "0 */6 * * *", "@daily"])
@pytest.mark.parametrize(
    "tz", ["America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Casablanca"]
)
def test_it_agrees_about_the_jumps_of_a_clock(text: str, tz: str, dst: str) -> None:
    for day in ("2018-10-28T07:30+00:00", "2018-02-10T00:00+00:00", "2019-03-25T00:10+00:00"):
        start = datetime.fromisoformat(day)
        end = start + timedelta(days=15)
        assert walked(text, tz, start, end, dst) == Cron(text, tz, dst).between(start, end, 10_000).fires


def test_an_interval_is_counted_from_its_anchor_and_a_moment_is_one() -> None:
    start = datetime.fromisoformat("2030-01-01T00:00+00:00")
    rule: dict[str, Any] = {
        "expression": "",
        "tz": "UTC",
        "dst": "cron",
        "start": start,
        "end": start + timedelta(hours=1),
    }
    found = almanac.expected(
        **rule, every=timedelta(minutes=25), anchor=start + timedelta(minutes=5), run_at=None
    )
    assert [(slot - start) // timedelta(minutes=1) for slot in found] == [5, 30, 55]
    once = start + timedelta(minutes=1)
    assert almanac.expected(**rule, every=None, anchor=start, run_at=once) == [once]
    assert almanac.expected(**rule, every=None, anchor=start, run_at=start) == []


def test_it_imports_nothing_of_what_it_checks() -> None:
    assert almanac.__file__
    tree = ast.parse(Path(almanac.__file__).read_text("utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
        )
    }
    assert not any(str(name).startswith("jobs") for name in imported)
