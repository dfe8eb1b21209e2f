"""New time zone data: next slots are worked out again, and what has changed is reported."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from jobs.conf import conf
from jobs.cron.tzdata import version
from jobs.errors import CronError
from jobs.models import CronDefinition, CronTick, OperatorAction

logger = logging.getLogger(__name__)

BATCH = 1000
SHOWN = 100
"""Definitions that the report names; the others are counted."""


def rezone(now: datetime, using: str = "default") -> list[tuple[int, datetime | None, datetime | None]]:
    """Recompute what was worked out under earlier data than ours: (id, old, new) of each definition that moved.

    Of hosts with different releases the latest decides: one with earlier data leaves the others' work alone.
    """
    mine, moved = version(), list[tuple[int, datetime | None, datetime | None]]()
    if not mine:
        logger.warning("the time zone data have no version: changes to them go unnoticed")
        return moved
    older = CronDefinition.objects.using(using).filter(
        ~Q(tz_version=""), tz_version__lt=mine, enabled=True, look_at__isnull=False
    )
    while True:
        with transaction.atomic(using):
            batch = list(older.select_for_update(skip_locked=True, no_key=True).order_by("id")[:BATCH])
            for definition in batch:
                if change := _rezone(definition, now, using):
                    moved.append((definition.pk, *change))
            # Also those that stay as they are, or each start would look at them again.
            CronDefinition.objects.using(using).filter(pk__in=[each.pk for each in batch]).update(
                tz_version=mine
            )
        if len(batch) < BATCH:
            break
    if moved:
        _report(moved, mine, using)
    return moved


def _rezone(
    definition: CronDefinition, now: datetime, using: str
) -> tuple[datetime | None, datetime | None] | None:
    """Old and new next slot, if they differ. What lies behind the cursor stays: the past is not rewritten."""
    cursor = definition.last_slot or definition.created_at
    try:
        rule = definition.rule()
        slot = rule.next(cursor)
        ahead = rule.between(now, cursor).fires if cursor > now else []
    except CronError:
        return None  # the ticker marks it
    if slot is not None and definition.end_at is not None and slot > definition.end_at:
        slot = None
    this = CronDefinition.objects.using(using).filter(pk=definition.pk)
    written = CronTick.objects.using(using).filter(
        definition_id=definition.pk, revision=definition.revision, slot__gt=now, slot__lte=cursor
    )
    if cursor > now and sorted(written.values_list("slot", flat=True)) != ahead:
        this.update(revision=F("revision") + 1)  # as an edit: what was written ahead is withdrawn
    elif slot != definition.next_slot:
        judged = definition.overlap != "allow_all"
        look_at = slot if slot is None or judged else slot - conf().cron_ahead
        this.update(next_slot=slot, look_at=look_at)
    else:
        return None
    return definition.next_slot, slot


def _report(moved: list[Any], mine: str, using: str) -> None:
    logger.warning("time zone data changed", extra={"version": mine, "definitions": len(moved)})
    shown = [{"id": pk, "was": str(old), "is": str(new)} for pk, old, new in moved[:SHOWN]]
    OperatorAction.objects.using(using).create(
        verb="rezone",
        actor_name=f"tzdata {mine}",
        target={"crondefinitions": shown},
        matched=len(moved),
        changed=len(moved),
    )
