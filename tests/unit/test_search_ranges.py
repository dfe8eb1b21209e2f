"""Ranges: what is written is what is meant, at both ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.search.ranges import Range, lengths, numbers
from jobs.search.terms import SearchError, parse

MINUTE = timedelta(minutes=1)
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def read(line: str) -> Range[Any]:
    (term,) = parse(line)
    return numbers(term) if term.name == "attempt" else lengths(term)


@pytest.mark.parametrize(
    ("line", "inside", "outside"),
    [
        ("attempt:3", [3], [2, 4]),
        ("attempt:=3", [3], [2, 4]),
        ("attempt:>3", [4, 99], [3]),
        ("attempt:>=3", [3, 99], [2]),
        ("attempt:<3", [0, 2], [3]),
        ("attempt:<=3", [0, 3], [4]),
        ("attempt:2..5", [2, 5], [1, 6]),
        ("attempt:0", [0], [1]),
    ],
)
def test_numbers(line: str, inside: list[int], outside: list[int]) -> None:
    found = read(line)
    assert [value for value in [*inside, *outside] if found.holds(value)] == inside


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("late:>5m", Range(5 * MINUTE)),
        ("late:5m", Range(5 * MINUTE)),
        ("late:<10s", Range(None, timedelta(seconds=10))),
        ("late:1m..2h", Range(MINUTE, 120 * MINUTE)),
        ("ran:>250ms", Range(timedelta(milliseconds=250))),
        ("ran:1w", Range(timedelta(days=7))),
    ],
)
def test_lengths(line: str, expected: Range[timedelta]) -> None:
    assert read(line) == expected


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("attempt:-1", "no number"),
        ("attempt:1.5", "no number"),
        ("attempt:99999999", "no number"),
        ("attempt:1,2", "takes one range"),
        ("attempt:..3", "no number"),
        ("attempt:5..2", "ends before"),
        ("late:5", "no length"),
        ("late:>", "no length"),
        ("late:5m..5m", "ends before"),
        ("ran:9999999w", "longer than 366 days"),
    ],
)
def test_what_is_no_range_is_refused_with_its_place(line: str, told: str) -> None:
    with pytest.raises(SearchError, match=told) as caught:
        read(line)
    assert (caught.value.start, caught.value.end) == (0, len(line))


def test_a_moment_so_long_ago_is_never_to_come() -> None:
    assert read("late:<5m").before("at", NOW) == {"at__lte": NOW, "at__gt": NOW - 5 * MINUTE}
    assert read("late:>5m").before("at", NOW) == {"at__lte": NOW - 5 * MINUTE}
