"""Charts as plain SVG, drawn by the server: geometry only. Colours are classes and words are HTML around them, so that
they follow the theme and stay legible on a phone. Each comes with the table of its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

WIDTH, HEIGHT = 600.0, 120.0
Number = float | int | None


@dataclass(frozen=True)
class Series:
    """One line or one row of bars; `style` is its class and the name of its colour. None: no value there."""

    label: str
    style: str
    values: Sequence[Number]


@dataclass(frozen=True)
class Bar:
    x: str
    y: str
    width: str
    height: str
    style: str
    title: str
    url: str = ""


@dataclass(frozen=True)
class Line:
    points: str
    style: str


@dataclass(frozen=True)
class Event:
    """Something that happened once, as a line from top to bottom."""

    x: str
    label: str


Events = Sequence[tuple[float, str]]
"""Each a place, from 0 (left) to 1, and words. What lies outside is not drawn."""


@dataclass(frozen=True)
class Chart:
    """What `jobs/_chart.html` draws. `rows` is its table: the label, then one text for each series."""

    label: str
    series: Sequence[Series]
    labels: Sequence[str]
    top: str
    bars: list[Bar] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    rows: list[tuple[str, list[str]]] = field(default_factory=list)
    marks: tuple[str, str, str] = ("", "", "")
    """Words below: left, middle, right."""
    events: list[Event] = field(default_factory=list)
    urls: Sequence[str] = ()
    """Where each label leads; empty: nowhere."""

    @property
    def lines_of_table(self) -> list[tuple[str, str, list[str]]]:
        """Each row with where it leads."""
        return [
            (label, self.urls[place] if place < len(self.urls) else "", texts)
            for place, (label, texts) in enumerate(self.rows)
        ]

    @property
    def is_empty(self) -> bool:
        return not any(value for series in self.series for value in series.values if value is not None)

    @property
    def view_box(self) -> str:
        return f"0 0 {WIDTH:g} {HEIGHT:g}"


def columns(
    label: str,
    labels: Sequence[str],
    series: Sequence[Series],
    *,
    text: Callable[[float], str] = "{:,.0f}".format,
    level: float | None = None,
    urls: Sequence[str] = (),
    events: Events = (),
) -> Chart:
    """Bars side by side, one group a label; with a `level`, a line across. Bars above the level are marked."""
    top = nice(max([*(value or 0 for each in series for value in each.values), level or 0], default=0))
    slot = WIDTH / max(len(labels), 1)
    width = max(slot / max(len(series), 1) - slot * 0.12, slot * 0.2)
    bars = []
    for number, each in enumerate(series):
        for place, value in enumerate(each.values):
            if not value:
                continue
            height = max(HEIGHT * value / top, 1.0)
            over = " over" if level is not None and value > level else ""
            bars.append(
                Bar(
                    f"{place * slot + slot * 0.06 + number * width:.2f}",
                    f"{HEIGHT - height:.2f}",
                    f"{width:.2f}",
                    f"{height:.2f}",
                    each.style + over,
                    f"{labels[place]}: {text(value)} {each.label}",
                    urls[place] if place < len(urls) else "",
                )
            )
    lines = []
    if level is not None:
        y = HEIGHT - HEIGHT * level / top
        lines.append(Line(f"0,{y:.2f} {WIDTH:g},{y:.2f}", "level"))
    rows = _rows(labels, series, text)
    marks, drawn = _marks(labels), _events(events)
    return Chart(label, series, labels, text(top), bars, lines, rows, marks, drawn, urls)


def curves(
    label: str,
    labels: Sequence[str],
    series: Sequence[Series],
    *,
    text: Callable[[float], str] = "{:,.0f}".format,
    events: Events = (),
) -> Chart:
    """A line for each series; where a value is missing it breaks, and a value alone is a short stroke."""
    top = nice(max([value or 0 for each in series for value in each.values], default=0))
    step = WIDTH / max(len(labels) - 1, 1)
    lines = []
    for each in series:
        for run in _runs(each.values):
            points = [(place * step, HEIGHT - HEIGHT * value / top) for place, value in run]
            if len(points) == 1:
                (x, y) = points[0]
                points = [(max(x - step / 3, 0), y), (min(x + step / 3, WIDTH), y)]
            lines.append(Line(" ".join(f"{x:.2f},{y:.2f}" for x, y in points), each.style))
    rows = _rows(labels, series, text)
    return Chart(label, series, labels, text(top), [], lines, rows, _marks(labels), _events(events))


def nice(value: float) -> float:
    """The next number that reads well on an axis, at least 1e-3."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (1, 1.5, 2, 3, 5, 7.5) if step * power >= value), 10 * power)


def _events(events: Events) -> list[Event]:
    return [Event(f"{place * WIDTH:.2f}", label) for place, label in events if 0 <= place <= 1]


def _runs(values: Sequence[Number]) -> list[list[tuple[int, float]]]:
    found: list[list[tuple[int, float]]] = [[]]
    for place, value in enumerate(values):
        if value is not None:
            found[-1].append((place, value))
        elif found[-1]:
            found.append([])
    return [run for run in found if run]


def _rows(
    labels: Sequence[str], series: Sequence[Series], text: Callable[[float], str]
) -> list[tuple[str, list[str]]]:
    def told(each: Series, place: int) -> str:
        value = each.values[place] if place < len(each.values) else None
        return "\N{EN DASH}" if value is None else text(value)

    return [(label, [told(each, place) for each in series]) for place, label in enumerate(labels)]


def _marks(labels: Sequence[str]) -> tuple[str, str, str]:
    return (labels[0], labels[len(labels) // 2], labels[-1]) if labels else ("", "", "")
