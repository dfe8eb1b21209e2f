"""What comes due in the next hour, minute by minute, against what was managed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from jobs import clock
from jobs.console.amounts import Count
from jobs.console.charts import Chart, Series, columns
from jobs.console.reading import rows
from jobs.console.remember import remembered
from jobs.errors import CronError
from jobs.models import CronDefinition, Tenant
from jobs.sql import load

MINUTES = 60
CAP = 20_000
"""Of timers counted in one minute."""
SAMPLE = 100
TOP = 10
DEFINITIONS = 300
FIRES = 3_000
"""Fires of cron rules worked out for one page; more are said to be left out."""


@dataclass(frozen=True)
class Minute:
    start: datetime
    timers: Count
    fires: int

    @property
    def total(self) -> int:
        return self.timers.value + self.fires


@dataclass(frozen=True)
class Forecast:
    minutes: Sequence[Minute]
    queues: list[tuple[str, int]]
    types: list[tuple[str, int]]
    tenants: list[tuple[str, int]]
    crons: list[tuple[str, int, int]]
    """Name, key and fires of the definitions that fire most."""
    left_out: int
    """Definitions that were not worked out; -1: some, and nobody counted."""
    made_at: datetime

    @property
    def total(self) -> int:
        return sum(minute.total for minute in self.minutes)

    @property
    def is_capped(self) -> bool:
        return any(minute.timers.is_capped for minute in self.minutes)

    @property
    def peak(self) -> Minute:
        return max(self.minutes, key=lambda minute: minute.total)


@remembered(30)
def forecast(using: str = "default") -> Forecast:
    """Of the hour that begins with the next whole minute; kept half a minute, for all."""
    now = clock.now(using)
    start = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    end = start + timedelta(minutes=MINUTES)
    found = rows(
        load("console/forecast"), {"start": start, "end": end, "cap": CAP, "sample": SAMPLE}, using
    )
    fires, crons, left_out = _fires(now, start, end, using)
    queues: Counter[str] = Counter()
    types: Counter[str] = Counter()
    owners: Counter[int] = Counter()
    minutes = []
    for moment, count, parts in found:
        sampled = sum(n for *_, n in parts or ())
        for queue, job_type, tenant_id, n in parts or ():
            share = n * count / sampled
            queues[queue] += share
            types[job_type] += share
            owners[tenant_id] += share
        minutes.append(Minute(moment, Count(count, CAP), fires[moment]))
    for definition, count in crons:
        types[definition.job_type] += count
        owners[definition.tenant_id] += count
        if definition.queue:
            queues[definition.queue] += count
    return Forecast(
        minutes, _top(queues), _top(types), _named(_top(owners), using),
        [(definition.name, definition.pk, count) for definition, count in crons[:TOP]], left_out, now,
    )  # fmt: skip


def gather(request: HttpRequest) -> dict[str, Any]:
    found = forecast()
    capacity = managed()
    return {
        "forecast": found,
        "capacity": capacity,
        "over": sum(minute.total > capacity for minute in found.minutes) if capacity else 0,
        "chart": chart(found, capacity),
    }


def managed() -> float | None:
    """Jobs a minute that were managed at best lately; None: nothing was measured."""
    return None


def chart(found: Forecast, capacity: float | None) -> Chart:
    labels = [f"{timezone.localtime(minute.start):%H:%M}" for minute in found.minutes]
    return columns(
        "Jobs due each minute of the next hour",
        labels,
        [Series("due", "due", [minute.total for minute in found.minutes])],
        level=capacity,
    )


def _fires(
    now: datetime, start: datetime, end: datetime, using: str
) -> tuple[Counter[datetime], list[tuple[CronDefinition, int]], int]:
    """What cron will add beyond the ticks that are written already: by minute, by definition, and what was left out."""
    written = CronDefinition.objects.using(using).filter(
        enabled=True, broken="", look_at__isnull=False, look_at__lt=end
    )
    definitions = list(written.defer("payload", "declared").order_by("look_at")[: DEFINITIONS + 1])
    by_minute: Counter[datetime] = Counter()
    counts: list[tuple[CronDefinition, int]] = []
    done = 0
    for definition in definitions[:DEFINITIONS]:
        if done >= FIRES:
            break
        slots = _slots(definition, max(now, start - timedelta(seconds=1)), end, FIRES - done)
        by_minute.update(slot.replace(second=0, microsecond=0) for slot in slots)
        done += len(slots)
        if slots:
            counts.append((definition, len(slots)))
    left_out = -1 if len(definitions) > DEFINITIONS or done >= FIRES else 0
    return by_minute, sorted(counts, key=lambda pair: (-pair[1], pair[0].name)), left_out


def _slots(definition: CronDefinition, after: datetime, end: datetime, limit: int) -> list[datetime]:
    """Its fires in (after, end) that no tick has been written for."""
    try:
        rule = definition.rule()
    except CronError:
        return []
    after = max(after, definition.last_slot or after, definition.start_at or after)
    until = min(end - timedelta(seconds=1), definition.end_at or end)
    return rule.between(after, until, limit).fires if until > after and limit > 0 else []


def _top(counts: Counter[Any]) -> list[tuple[Any, int]]:
    return [(name, round(count)) for name, count in counts.most_common(TOP)]


def _named(owners: list[tuple[int, int]], using: str) -> list[tuple[str, int]]:
    slugs = dict(
        Tenant.objects.using(using).filter(pk__in=[pk for pk, _ in owners]).values_list("pk", "slug")
    )
    return [(slugs.get(pk, str(pk)), count) for pk, count in owners]
