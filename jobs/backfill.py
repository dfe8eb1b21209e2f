"""Runs that somebody asks for: one now, or the slots of a stretch of the past. They come on top of the ledger's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connections, transaction

from jobs import clock, notify, partitions
from jobs.bulk import insert_many
from jobs.conf import conf
from jobs.cron.recurrence import utc
from jobs.defining import stored_time
from jobs.errors import CronError, describe
from jobs.expanding import Definition, job_row, with_text
from jobs.firing import FIRED, LATE
from jobs.ids import ceil_ms, derived_id
from jobs.models import CronDefinition, CronRun, CronTick, TickOutcome
from jobs.newjob import Row, clamp

MOST = 10_000
"""Slots of one backfill."""
RAN = (FIRED, LATE, TickOutcome.BACKFILLED, TickOutcome.WAITING)
SLOWEST = 0.001
"""Jobs a second of a backfill: 10,000 of them are due within four months."""
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True)
class Backfill:
    slots: int
    """So many slots lie in the range."""
    ran: int
    """So many of them had run already, or wait to; they are left out."""
    job_ids: tuple[UUID, ...] = ()
    """The jobs, oldest slot first; none for a dry run, or when they wait for each other."""

    @property
    def missing(self) -> int:
        return self.slots - self.ran


def backfill(
    definition: CronDefinition,
    start: datetime,
    end: datetime,
    *,
    rate: float = 1.0,
    overlap: str = "allow_all",
    dry_run: bool = False,
) -> Backfill:
    """Run the slots in [start, end] that have not run: their jobs are due from now on, `rate` of them a second.

    `overlap`: allow_all, or buffer_all to run one after another. `dry_run`: only count. The job's slot is in its tick
    and in the handler's context. CronError for a range that begins before the retention, ends in the future or holds
    more than 10,000 slots. Two backfills of one range at once run each slot once.
    """
    using = definition.alias
    now = clock.now(using)
    _check(start, end, now, rate, overlap)
    found = definition.rule().between(utc("start", start) - _MOMENT, end, limit=MOST)
    if found.cut:
        raise CronError("end", f"more than {MOST} slots lie in this range; backfill it in parts")
    with transaction.atomic(using):
        CronDefinition.objects.using(using).select_for_update(no_key=True).get(pk=definition.pk)
        ran = _ran(definition, start, end, using)
        slots = [slot for slot in found.fires if slot not in ran]
        if dry_run or not slots:
            return Backfill(len(found.fires), len(found.fires) - len(slots))
        if overlap == "buffer_all":
            ids = _wait(definition, slots, now, using)
        else:
            gap = timedelta(seconds=1 / rate)
            ids = _start(definition, slots, [now + n * gap for n in range(len(slots))], now, using)
    return Backfill(len(found.fires), len(found.fires) - len(slots), tuple(ids))


def run_now(definition: CronDefinition) -> UUID:
    """One run at once; later slots are judged against it, as against any other."""
    using = definition.alias
    now = clock.now(using)
    with transaction.atomic(using):
        locked = CronDefinition.objects.using(using).select_for_update(no_key=True).get(pk=definition.pk)
        row = _row(_definition(locked), now, now, now)
        partitions.require([row.due_at, now], using)
        _insert([row], now, using)
        tick_id = derived_id(now, "manual", locked.pk, row.id)
        _ticks(locked, [(tick_id, now, row.id)], TickOutcome.MANUAL, "", using)
        if locked.overlap != "allow_all":
            CronRun.objects.using(using).create(
                tick_id=tick_id,
                definition_id=locked.pk,
                revision=locked.revision,
                slot=now,
                job_id=row.id,
                asked=True,
            )
    return row.id


def _check(start: datetime, end: datetime, now: datetime, rate: Any, overlap: str) -> None:
    start, end = stored_time("start", start), stored_time("end", end)
    if end < start:
        raise CronError("end", f"{end} is before the start, {start}")
    if end > now:
        raise CronError("end", f"{end} is in the future: what comes then fires by itself")
    if clamp(start, now) != start:
        raise CronError("start", f"{start} is older than the retention, {conf().retention.days} days")
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not SLOWEST <= rate <= 1000:
        raise CronError("rate", f"{describe(rate)} is not {SLOWEST} to 1000 jobs a second")
    if overlap not in ("allow_all", "buffer_all"):
        raise CronError("overlap", f"{describe(overlap)} is not one of allow_all, buffer_all")


def _ran(definition: CronDefinition, start: datetime, end: datetime, using: str) -> set[datetime]:
    """Slots of any revision that have a run."""
    ticks = CronTick.objects.using(using).filter(
        definition_id=definition.pk, slot__gte=start, slot__lte=end, outcome__in=RAN
    )
    return set(ticks.values_list("slot", flat=True))


def _start(
    definition: CronDefinition, slots: Sequence[datetime], dues: Sequence[datetime], now: datetime, using: str
) -> list[UUID]:
    made = with_text(_definition(definition))
    rows = [_row(made, slot, due, now) for slot, due in zip(slots, dues, strict=True)]
    partitions.require([*slots, *(row.due_at for row in rows)], using)
    ticks = [(_tick_id(definition, slot), slot, row.id) for slot, row in zip(slots, rows, strict=True)]
    _insert(rows, now, using)
    _ticks(definition, ticks, TickOutcome.BACKFILLED, "", using)
    return [row.id for row in rows]


def _wait(definition: CronDefinition, slots: Sequence[datetime], now: datetime, using: str) -> list[UUID]:
    """Starts that wait, one after another: the ticker begins each when the one before has ended."""
    partitions.require(slots, using)
    waiting = [(_tick_id(definition, slot), slot, None) for slot in slots]
    _ticks(definition, waiting, TickOutcome.BACKFILLED, "one after another", using)
    CronRun.objects.using(using).bulk_create(
        CronRun(tick_id=pk, definition_id=definition.pk, revision=definition.revision, slot=slot, asked=True)
        for pk, slot, _ in waiting
    )
    CronDefinition.objects.using(using).filter(pk=definition.pk).update(look_at=now)
    return []


def _row(definition: Definition, slot: datetime, due: datetime, now: datetime) -> Row:
    row = job_row(definition, slot, now)
    row.due_at = ceil_ms(due)
    row.id = derived_id(row.due_at, "asked", definition.id, slot.isoformat(), uuid4())
    return row


def _definition(definition: CronDefinition) -> Definition:
    values: dict[str, Any] = {name: getattr(definition, name, None) for name in Definition._fields}
    values |= {"anchor": definition.anchor_at, "cursor": definition.last_slot}
    return Definition(**values)


def _tick_id(definition: CronDefinition, slot: datetime) -> UUID:
    """Of its own beside the slot's row; the same for every backfill, so a slot has one."""
    return derived_id(slot, "backfill", definition.pk, slot.isoformat())


def _insert(rows: Sequence[Row], now: datetime, using: str) -> None:
    with connections[using].cursor() as cursor:
        insert_many(cursor, rows, now + conf().look_ahead)
    notify.after_commit(using)


def _ticks(
    definition: CronDefinition,
    ticks: Sequence[tuple[UUID, datetime, UUID | None]],
    outcome: TickOutcome,
    reason: str,
    using: str,
) -> None:
    made = (
        CronTick(
            id=pk,
            slot=slot,
            definition_id=definition.pk,
            revision=definition.revision,
            outcome=outcome,
            reason=reason,
            job_id=job_id,
        )
        for pk, slot, job_id in ticks
    )
    # One that waited and was dropped by an edit is there already.
    CronTick.objects.using(using).bulk_create(
        made,
        update_conflicts=True,
        unique_fields=["id", "slot"],
        update_fields=["outcome", "reason", "job_id", "revision"],
    )
