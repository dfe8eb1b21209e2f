"""Every row of the golden and invalid vectors. Their times come from a brute-force simulation, not from a library."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.cron import Cron, CronError

DATA = Path(__file__).parent / "data"


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(newline="", encoding="ascii") as file:
        return list(csv.DictReader(file))


GOLDEN = _rows("cron_golden.csv")
INVALID = _rows("cron_invalid.csv")


def _expected(row: dict[str, str]) -> list[datetime]:
    return [datetime.fromisoformat(text) for text in row["expected"].split("|")]


@pytest.mark.parametrize("row", GOLDEN, ids=[row["id"] for row in GOLDEN])
def test_golden_row(row: dict[str, str]) -> None:
    cron = Cron(row["expression"], row["timezone"])
    after = datetime.fromisoformat(row["after"])
    expected = _expected(row)
    assert len(expected) == int(row["n"])

    moment, found = after, []
    for _ in expected:
        following = cron.next(moment)
        assert following is not None
        assert following.tzinfo is UTC
        found.append(following)
        moment = following
    assert found == expected, row["why"]
    assert cron.between(after, expected[-1]) == (expected, False)

    backwards = [cron.prev(fire) for fire in expected]
    assert backwards == expected
    assert Cron(cron.canonical, row["timezone"]).between(after, expected[-1]).fires == expected


@pytest.mark.parametrize(
    "row", INVALID, ids=[f"{number}-{row['reason'][:40]}" for number, row in enumerate(INVALID)]
)
def test_invalid_row_is_refused_with_a_reason(row: dict[str, str]) -> None:
    text = row["expression"].encode("ascii").decode("unicode_escape")
    with pytest.raises(CronError) as refusal:
        Cron(text)
    error = refusal.value
    assert isinstance(error, ValueError)
    assert error.field in {"expression", "minute", "hour", "day of month", "month", "day of week"}
    assert 0 < len(error.message) < 200
    assert error.message.isprintable()


def test_no_row_was_lost() -> None:
    assert (len(GOLDEN), len(INVALID)) == (457, 155)
