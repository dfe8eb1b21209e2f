"""What comes due in the next hour, minute by minute, against what was managed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from jobs import clock, rollups
from jobs.console import sections
from jobs.console.charts import Chart, Series, columns
from jobs.console.reading import rows
from jobs.console.remember import remembered
from jobs.errors import CronError
from jobs.models import CronDefinition
from jobs.models.rollup import Kind
from jobs.scope import slugs_of
from jobs.search.times import moment_text
from jobs.sql import load

MINUTE = timedelta(minutes=1)
MINUTES = 60
TOP = 10
MEASURED = timedelta(hours=24)
"""What was managed at best is looked for so far back."""
DEFINITIONS = 300
FIRES = 3_000
"""Fires of cron rules worked out for one page; what is left out is said."""


@dataclass(frozen=True)
class Minute:
    start: datetime
    jobs: int
    fires: int

    @property
    def total(self) -> int:
        return self.jobs + self.fires


@dataclass(frozen=True)
class Top:
    label: str
    lines: Sequence[tuple[str, int]]


@dataclass(frozen=True)
class CronShare:
    name: str
    pk: int
    fires: int


@dataclass(frozen=True)
class Forecast:
    minutes: Sequence[Minute]
    crons: Sequence[CronShare]
    is_cut: bool
    """Not all cron definitions were worked out."""
    capacity: float | None
    """Jobs a minute that were managed at best lately; None: it never had to show."""
    as_of: datetime | None

    @property
    def total(self) -> int:
        return sum(minute.total for minute in self.minutes)

    @property
    def fires(self) -> int:
        return sum(minute.fires for minute in self.minutes)

    @property
    def peak(self) -> Minute:
        return max(self.minutes, key=lambda minute: minute.total)

    @property
    def over(self) -> int:
        """Minutes that need more than was managed."""
        return sum(minute.total > self.capacity for minute in self.minutes) if self.capacity else 0

    @property
    def hourly(self) -> float | None:
        """What is managed in an hour."""
        return self.capacity * MINUTES if self.capacity else None

    @property
    def capacity_told(self) -> str:
        return f"managed at best: {self.capacity:,.0f}" if self.capacity else ""


@remembered(20)
def forecast(slugs: tuple[str, ...] | None = None) -> Forecast:
    """Of the hour that begins with this minute; the same for all who ask within 20 seconds. `slugs`: of these tenants
    alone; what the fleet can manage is then not told."""
    now = clock.now()
    start = rollups.floor(now, 60)
    end = start + MINUTES * MINUTE
    ahead = rollups.outlook(now - MEASURED, now, slugs=slugs)
    fires, crons, is_cut = _fires(now, end, slugs)
    minutes = (start + n * MINUTE for n in range(MINUTES))
    return Forecast(
        [Minute(at, ahead.due.get(at, 0), fires[at]) for at in minutes],
        crons,
        is_cut,
        ahead.capacity,
        ahead.as_of,
    )


@remembered(20)
def tops(slugs: tuple[str, ...] | None) -> list[Top]:
    """Which queues, types and tenants the hour's jobs are of; within a scope, which tenants."""
    found: dict[str, list[tuple[str, int]]] = {}
    values = {"top": TOP, "every": slugs is None, "slugs": list(slugs or ())}
    for kind, name, count in rows(load("console/forecast_top"), values):
        found.setdefault(kind, []).append((name, count))
    return [Top(label, found.get(kind, [])) for kind, label in _KINDS if slugs is None or kind == Kind.TENANT]


_KINDS = ((Kind.QUEUE.value, "Queue"), (Kind.TYPE.value, "Type"), (Kind.TENANT.value, "Tenant"))


def gather(request: HttpRequest) -> dict[str, Any]:
    seen = slugs_of(request.user)
    slugs = None if seen is None else tuple(seen)
    found = forecast(slugs)
    return {
        "forecast": found,
        "tops": tops(slugs),
        "chart": chart(found, getattr(request, "current_app", None) or "admin"),
        "is_old": rollups.is_old(found.as_of, clock.now()),
        "measured": MEASURED,
    }


def chart(found: Forecast, site: str = "admin") -> Chart:
    """Each bar leads to the jobs that are due in its minute."""
    labels = [f"{timezone.localtime(minute.start):%H:%M}" for minute in found.minutes]
    return columns(
        "Jobs due in each minute of the next hour",
        labels,
        [Series("jobs", "due", [minute.total for minute in found.minutes])],
        level=found.capacity,
        urls=[_jobs_of(minute, site) for minute in found.minutes],
    )


def _jobs_of(minute: Minute, site: str) -> str:
    """Empty where there is nothing but fires of cron: their jobs have not been written yet."""
    if not minute.jobs:
        return ""
    window = f"{moment_text(minute.start)}..{moment_text(minute.start + MINUTE)}"
    return sections.search(site, due=window)


def _fires(
    now: datetime, end: datetime, slugs: tuple[str, ...] | None
) -> tuple[Counter[datetime], list[CronShare], bool]:
    """What cron will add beyond the jobs that its ticks have written already: by minute and by definition."""
    found = CronDefinition.objects.filter(enabled=True, broken="", look_at__isnull=False, look_at__lt=end)
    if slugs is not None:
        found = found.filter(tenant__slug__in=slugs)
    definitions = list(found.defer("payload", "declared").order_by("look_at")[: DEFINITIONS + 1])
    by_minute: Counter[datetime] = Counter()
    shares: list[CronShare] = []
    left = FIRES
    for definition in definitions[:DEFINITIONS]:
        slots = _slots(definition, now, end, left)
        by_minute.update(rollups.floor(slot, 60) for slot in slots)
        left -= len(slots)
        if slots:
            shares.append(CronShare(definition.name, definition.pk, len(slots)))
    shares.sort(key=lambda share: (-share.fires, share.name))
    return by_minute, shares[:TOP], len(definitions) > DEFINITIONS or left <= 0


def _slots(definition: CronDefinition, now: datetime, end: datetime, limit: int) -> list[datetime]:
    """Its fires until `end` that no tick has been written for."""
    try:
        rule = definition.rule()
    except CronError:
        return []
    after = max(now, definition.last_slot or now, definition.start_at or now)
    until = min(end - timedelta(seconds=1), definition.end_at or end)
    return rule.between(after, until, limit).fires if until > after and limit > 0 else []
