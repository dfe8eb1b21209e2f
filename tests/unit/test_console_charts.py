"""Charts are geometry that fits its box, and say the same in their table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.console.amounts import lasting
from jobs.console.charts import HEIGHT, WIDTH, Series, columns, curves, nice

VALUES = st.lists(st.none() | st.integers(0, 10**9), min_size=1, max_size=80)


@given(VALUES, st.none() | st.integers(1, 10**9))
def test_bars_stay_in_their_box(values: list[int | None], level: int | None) -> None:
    labels = [str(n) for n in range(len(values))]
    chart = columns("x", labels, [Series("a", "due", values)], level=level)
    assert len(chart.bars) == sum(bool(value) for value in values)
    for bar in chart.bars:
        assert 0 <= float(bar.x) <= float(bar.x) + float(bar.width) <= WIDTH + 0.02
        assert -0.01 <= float(bar.y) <= HEIGHT
        assert float(bar.y) + float(bar.height) == pytest.approx(HEIGHT, abs=0.02)
    assert len(chart.rows) == len(values)


@given(VALUES)
def test_lines_stay_in_their_box_and_break_where_nothing_is_known(values: list[int | None]) -> None:
    chart = curves("x", [str(n) for n in range(len(values))], [Series("a", "due", values)])
    points = [tuple(map(float, pair.split(","))) for line in chart.lines for pair in line.points.split()]
    assert all(0 <= x <= WIDTH + 0.01 and -0.01 <= y <= HEIGHT + 0.01 for x, y in points)
    runs = "".join("." if value is None else "x" for value in values).split(".")
    assert len(chart.lines) == sum(bool(run) for run in runs)


def test_a_bar_above_the_level_is_marked() -> None:
    chart = columns("x", ["a", "b"], [Series("jobs", "due", [5, 15])], level=10)
    assert [bar.style for bar in chart.bars] == ["due", "due over"]
    assert [line.style for line in chart.lines] == ["level"]


def test_the_table_says_what_the_chart_shows() -> None:
    chart = curves("x", ["09:00", "09:01"], [Series("half", "good", [0.25, None])], text=lasting)
    assert chart.rows == [("09:00", ["250 ms"]), ("09:01", ["\N{EN DASH}"])]
    assert chart.marks == ("09:00", "09:01", "09:01")


def test_a_chart_of_nothing_says_so() -> None:
    assert columns("x", ["a"], [Series("jobs", "due", [0])]).is_empty
    assert not columns("x", ["a"], [Series("jobs", "due", [1])]).is_empty
    assert curves("x", [], [Series("jobs", "due", [])]).is_empty


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (0.4, 0.5), (1, 1), (1.2, 1.5), (63, 75), (99, 100), (101, 150)]
)
def test_an_axis_ends_at_a_number_that_reads_well(value: float, top: float) -> None:
    assert nice(value) == pytest.approx(top)
