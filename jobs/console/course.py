"""Charts over time, from the rollups: what came in and went out, and how late jobs started."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from jobs import clock, rollups
from jobs.console.amounts import lasting, percent
from jobs.console.charts import Chart, Series, curves
from jobs.console.deploys import Deploy
from jobs.console.remember import remembered
from jobs.histogram import Histogram
from jobs.models.rollup import Kind, Step

SPANS = {"1h": timedelta(hours=1), "24h": timedelta(hours=24), "7d": timedelta(days=7)}
DEFAULT = "1h"
PUNCTUAL = timedelta(seconds=5)
"""A job that starts within this of its due time counts as on time."""
RECENT = 5
"""Steps of the latest numbers that "now" stands for."""


@dataclass(frozen=True)
class Course:
    series: rollups.Series
    span: str
    now: datetime

    @property
    def is_old(self) -> bool:
        """The numbers have stopped: the loop that counts does not run, or cannot keep up."""
        return rollups.is_old(self.series.as_of, self.now)

    @property
    def known(self) -> list[rollups.Point]:
        """The points that numbers have reached."""
        reached = self.series.as_of
        return [each for each in self.series.points if reached is not None and each.at < reached]

    @property
    def recent(self) -> rollups.Point:
        return rollups.total(self.known[-RECENT:])

    @property
    def total(self) -> rollups.Point:
        return rollups.total(self.known)

    @property
    def recent_told(self) -> str:
        return f"{RECENT} minutes" if self.series.step.total_seconds() == 60 else f"{RECENT} hours"

    @property
    def on_time(self) -> str | None:
        """Which part of the latest jobs started on time, in words; None: none started."""
        return on_time(self.recent.late)

    @property
    def is_punctual(self) -> bool:
        share = self.recent.late.share_within(PUNCTUAL)
        return share is None or share >= 0.99

    @property
    def late_95(self) -> timedelta | None:
        return self.total.late.percentile(95)

    def flow(self) -> Chart:
        minutes = self.series.step.total_seconds() / 60
        return self._curves(
            "Jobs a minute" if minutes == 1 else "Jobs an hour",
            [
                ("came due", "due", lambda point: point.due),
                ("completed", "good", lambda point: point.completed),
                ("failed", "bad", lambda point: point.failed),
            ],
            "{:,.0f}".format,
        )

    def lateness(self) -> Chart:
        return self._curves(
            "Lateness at the start",
            [
                ("99 %", "bad", lambda point: _seconds(point.late, 99)),
                ("95 %", "mid", lambda point: _seconds(point.late, 95)),
                ("half", "good", lambda point: _seconds(point.late, 50)),
            ],
            lasting,
        )

    def _curves(
        self,
        label: str,
        lines: list[tuple[str, str, Callable[[rollups.Point], float | None]]],
        text: Callable[[float], str],
    ) -> Chart:
        reached = self.series.as_of
        form = "%H:%M" if self.span == "1h" else "%a %H:%M" if self.span == "24h" else "%d %b %H:%M"
        labels = [timezone.localtime(point.at).strftime(form) for point in self.series.points]
        series = [
            Series(
                name,
                style,
                [
                    value(each) if reached is not None and each.at < reached else None
                    for each in self.series.points
                ],
            )
            for name, style, value in lines
        ]
        return curves(label, labels, series, text=text, events=self._events())

    def _events(self) -> list[tuple[float, str]]:
        """The deploys of the time that is shown."""
        points = self.series.points
        if len(points) < 2:
            return []
        first, whole = points[0].at, points[-1].at - points[0].at
        return [((at - first) / whole, Deploy(at, name).told) for at, name in self.series.deploys]


def course(kind: Kind, name: str, asked: str, slugs: Collection[str] | None = None) -> Course:
    """Of a queue, a type, a tenant or of all, over the span that was asked for (a name in SPANS; else the default).
    `slugs`: of these tenants alone."""
    span = asked if asked in SPANS else DEFAULT
    return _read(kind, name, span, None if slugs is None else tuple(slugs))


@remembered(5)
def _read(kind: Kind, name: str, span: str, slugs: tuple[str, ...] | None) -> Course:
    now = clock.now()
    step = Step.MINUTE if span == "1h" else Step.HOUR
    until = rollups.floor(now, step)
    series = rollups.series(kind, name, until - SPANS[span], until, step, slugs=slugs)
    return Course(series, span, now)


def on_time(late: Histogram) -> str | None:
    if not late.total:
        return None
    share = late.share_within(PUNCTUAL) or 0.0
    return percent(share * late.total, late.total)


def _seconds(late: Histogram, part: float) -> float | None:
    found = late.percentile(part)
    return None if found is None else found.total_seconds()


@dataclass(frozen=True)
class Past:
    """The last hour of one name, for a line of a table."""

    point: rollups.Point

    @property
    def ended(self) -> int:
        return self.point.ended

    @property
    def failed(self) -> int:
        return self.point.failed

    @property
    def failing_told(self) -> str:
        share = self.point.failing
        return "\N{EN DASH}" if share is None else percent(share, 1.0)

    @property
    def on_time(self) -> str | None:
        return on_time(self.point.late)

    @property
    def late_95(self) -> timedelta | None:
        return self.point.late.percentile(95)

    @property
    def ran_50(self) -> timedelta | None:
        return self.point.ran.percentile(50)

    @property
    def ran_95(self) -> timedelta | None:
        return self.point.ran.percentile(95)


@remembered(10)
def pasts(kind: Kind, names: tuple[str, ...], using: str = "default") -> dict[str, Past]:
    """The last hour by name; every name is there. One statement."""
    now = clock.now(using)
    found = rollups.totals(kind, now - SPANS["1h"], now, names=names)
    return {name: Past(found.get(name, rollups.Point(now))) for name in names}
