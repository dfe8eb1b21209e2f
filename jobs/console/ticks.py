"""The tick ledger of one cron definition: what became of every slot, a page at a time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from jobs.conf import conf
from jobs.models import CronDefinition, CronTick, TickOutcome

SIZE = 50
SPAN = timedelta(days=31)
"""A page looks so far back from where it begins; the ledger is kept for the retention."""
GOOD = {TickOutcome.FIRED, TickOutcome.BACKFILLED, TickOutcome.MANUAL}


def page(definition: CronDefinition, asked: str) -> dict[str, Any]:
    """The slots before `asked` (or before what is written ahead), latest first."""
    now = timezone.now()
    end = _moment(asked) or now + conf().cron_ahead + timedelta(days=1)
    start = end - SPAN
    ticks: list[Any] = list(
        CronTick.objects.using(definition._state.db)
        .filter(definition_id=definition.pk, slot__gte=start, slot__lt=end)
        .order_by("-slot")[: SIZE + 1]
    )
    for tick in ticks:
        tick.more = tick.slots - 1
    older = None
    if len(ticks) > SIZE:
        older = ticks[SIZE - 1].slot.isoformat()
    elif start > now - conf().retention - timedelta(days=1):
        older = start.isoformat()
    return {
        "ticks": ticks[:SIZE],
        "older": older,
        "start": start,
        "end": end,
        "is_first": not _moment(asked),
        "counts": _counts(ticks[:SIZE]),
        "kept": conf().retention,
    }


def _moment(text: str) -> datetime | None:
    try:
        found = parse_datetime(text[:40])
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None and 2000 <= found.year < 2200 else None


def _counts(ticks: list[CronTick]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for tick in ticks:
        counts[tick.outcome] = counts.get(tick.outcome, 0) + tick.slots
    return sorted(counts.items(), key=lambda pair: -pair[1])
