"""Numbers, durations and messages as the console words them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.console.amounts import Count, about, lasting, many, percent, size
from jobs.console.errors import pattern
from jobs.console.remember import forget, remembered


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 ms"), (0.0324, "32 ms"), (1, "1 s"), (4.26, "4.3 s"), (9.99, "10 s"), (59.4, "59 s"), (60, "1 min"),
        (200, "3 min 20 s"), (3600, "1 h"), (7500, "2 h 5 min"), (90000, "1 d 1 h"), (-75, "-1 min 15 s"),
        (None, "\N{EN DASH}"), (timedelta(days=30), "30 d"), (59.7, "1 min"),
    ],
)  # fmt: skip
def test_a_duration_has_one_or_two_units(seconds: float | timedelta | None, told: str) -> None:
    assert lasting(seconds) == told


def test_a_count_that_met_its_cap_says_at_least() -> None:
    assert str(Count(9_999, 10_000)) == "9,999"
    assert str(Count(10_000, 10_000)) == "10,000+"
    assert not Count(0, 10_000)


def test_a_number_and_its_noun_agree() -> None:
    assert many(1, "job") == "1 job"
    assert many(0, "job") == "0 jobs"
    assert many(Count(5_000, 5_000), "process", "processes") == "5,000+ processes"
    assert many(Count(1, 1), "job") == "1+ jobs"


@pytest.mark.parametrize(
    ("part", "whole", "told"),
    [
        (1, 1, "100 %"), (999_999, 1_000_000, "99.99 %"), (9_997, 10_000, "99.97 %"), (0, 5, "0 %"),
        (1, 1_000_000, "< 0.01 %"), (1, 3, "33.3 %"), (0, 0, "\N{EN DASH}"), (3, 2, "150 %"),
    ],
)  # fmt: skip
def test_a_share_is_never_all_or_nothing_by_rounding(part: int, whole: int, told: str) -> None:
    assert percent(part, whole) == told


def test_estimates_and_bytes_are_rounded() -> None:
    assert [about(n) for n in (7, 1_234, 1_234_567)] == ["≈ 7", "≈ 1.23 k", "≈ 1.23 M"]
    assert [size(n) for n in (0, 8_192, 123_456_789)] == ["0 B", "8.19 kB", "123 MB"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gateway said 503 to order 81723", "gateway said 502 to order 9"),
        ("no such plan: 'gold'", "no such plan: 'silver'"),
        (
            "job 0190a7d2-0000-7000-8000-000000000000 is gone",
            "job 0190a7d2-1111-7000-8000-0000000000ff is gone",
        ),
        ("at 0x7f3a", "at 0xbeef"),
        ("took 1.5 s at 12:30:01", "took 2.75 s at 09:00:59"),
    ],
)
def test_messages_that_differ_in_what_varies_are_one(one: str, other: str) -> None:
    assert pattern(one) == pattern(other) != one


def test_messages_that_differ_in_words_are_two() -> None:
    assert pattern("cannot read 5") != pattern("cannot write 5")


def test_what_was_read_a_moment_ago_is_not_read_again() -> None:
    asked: list[int] = []

    @remembered(60)
    def read(number: int) -> int:
        asked.append(number)
        return number * 2

    assert [read(1), read(1), read(2)] == [2, 2, 4]
    assert asked == [1, 2]
    forget()
    assert read(1) == 2
    assert asked == [1, 2, 1]


def test_what_raised_is_read_again() -> None:
    asked: list[int] = []

    @remembered(60)
    def read() -> int:
        asked.append(1)
        raise ValueError

    for _ in range(2):
        with pytest.raises(ValueError):  # noqa: PT011
            read()
    assert len(asked) == 2
    forget()
