"""Tick: due cron definitions become jobs, ahead of their slots, exactly one tick row per slot.

In one transaction a definition's row is locked, its ticks and jobs are written and its cursor moves. Ids are derived
from definition, revision and slot: a second ticker can write nothing twice.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from jobs import declared, partitions
from jobs.bulk import insert_many
from jobs.conf import conf
from jobs.cron import Cron
from jobs.errors import CronError
from jobs.firing import Firing, Policy, firings
from jobs.ids import derived_id
from jobs.newjob import Row, clamp
from jobs.payload import encode
from jobs.registry import registry
from jobs.sql import load

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

BATCH = 200


class Definition(NamedTuple):
    id: int
    tenant_id: int
    expression: str
    timezone: str
    dst: str
    job_type: str
    payload: dict[str, Any]
    queue: str | None
    priority: int
    max_attempts: int | None
    start_at: datetime | None
    end_at: datetime | None
    misfire: str
    misfire_grace: timedelta
    catchup_window: timedelta
    catchup_limit: int
    revision: int
    cursor: datetime


@dataclass
class Expansion:
    """What one pass writes."""

    ticks: list[tuple[UUID, Definition, Firing, Row | None]] = field(default_factory=list)
    moves: list[tuple[int, datetime | None, datetime, str]] = field(default_factory=list)


class Ticker:
    name = "tick"
    batch = BATCH

    def __init__(self, using: str = "default") -> None:
        self.using = using
        self.period = conf().idle_period.total_seconds()
        self._synced = False

    def run_once(self, connection: Connection, now: datetime) -> int:
        if not self._synced:
            declared.sync(self.using)
            self._synced = True
        until = now + conf().cron_ahead
        partitions.require([now, until], self.using)
        with connection.transaction():
            rows = connection.execute(
                load("due_definitions"), {"until": until, "limit": BATCH}, prepare=True
            ).fetchall()
            expansion = Expansion()
            for row in rows:
                _expand(Definition(*row), now, until, expansion)
            _write(connection, expansion, now)
        return len(rows)

    def interrupted(self) -> None:
        """Everything is in the tables."""


def _expand(definition: Definition, now: datetime, until: datetime, expansion: Expansion) -> None:
    """A definition that cannot be expanded is marked and left out; the others go on."""
    try:
        rule = Cron(definition.expression, tz=definition.timezone, dst=definition.dst)
        found, next_slot = _firings(rule, definition, now, until)
        made = [(_tick_id(definition, each), definition, each, _row(definition, each, now)) for each in found]
    except (CronError, ValueError, OverflowError) as error:
        logger.error("cron definition is broken", extra={"definition": definition.id, "error": str(error)})
        expansion.moves.append((definition.id, None, definition.cursor, str(error)[:500]))
        return
    expansion.ticks += made
    expansion.moves.append((definition.id, next_slot, max(definition.cursor, until), ""))


def _firings(
    rule: Cron, definition: Definition, now: datetime, until: datetime
) -> tuple[list[Firing], datetime | None]:
    cursor, end = definition.cursor, definition.end_at
    if definition.start_at is not None:  # a slot at the very start counts
        cursor = max(cursor, definition.start_at - timedelta(microseconds=1))
    policy = Policy(
        misfire=definition.misfire,
        grace=definition.misfire_grace,
        window=definition.catchup_window,
        limit=definition.catchup_limit,
    )
    stop = until if end is None else min(until, end)
    found = firings(rule, policy, cursor=cursor, now=now, until=stop) if stop > cursor else []
    next_slot = rule.next(max(cursor, until))
    if next_slot is None or (end is not None and next_slot > end):
        next_slot = datetime.max.replace(tzinfo=now.tzinfo) - timedelta(
            days=1
        )  # never again, but not "unknown"
    return found, next_slot


def _tick_id(definition: Definition, firing: Firing) -> UUID:
    return derived_id(firing.slot, "tick", definition.id, definition.revision, firing.slot.isoformat())


def _row(definition: Definition, firing: Firing, now: datetime) -> Row | None:
    """The job of a slot. An unknown type is no error here: the job waits, parked, for a worker that knows it."""
    if not firing.runs:
        return None
    known = registry.get(definition.job_type)
    due_at = clamp(firing.slot, now)
    return Row(
        derived_id(due_at, "job", definition.id, definition.revision, firing.slot.isoformat()),
        due_at,
        "",
        definition.job_type,
        definition.queue or (known.queue if known else definition.job_type),
        definition.priority,
        encode(definition.payload, limit=conf().payload_bytes),
        None,
        definition.max_attempts or (known.max_attempts if known else conf().max_attempts),
        None,
        None,
        cron_id=definition.id,
        tenant_id=definition.tenant_id,
    )


def _write(connection: Connection, expansion: Expansion, now: datetime) -> None:
    if expansion.ticks:
        new = _write_ticks(connection, expansion.ticks)
        rows = [row for tick_id, _, _, row in expansion.ticks if row is not None and tick_id in new]
        with connection.cursor() as cursor:
            insert_many(cursor, rows, now + conf().look_ahead)
        logger.info("ticked", extra={"ticks": len(new), "jobs": len(rows)})
    if expansion.moves:
        ids, nexts, lasts, brokens = (list(column) for column in zip(*expansion.moves, strict=True))
        connection.execute(
            load("advance_definitions"), {"ids": ids, "nexts": nexts, "lasts": lasts, "brokens": brokens}
        )


def _write_ticks(
    connection: Connection, ticks: Sequence[tuple[UUID, Definition, Firing, Row | None]]
) -> set[UUID]:
    written = connection.execute(
        load("ticks"),
        {
            "ids": [tick_id for tick_id, _, _, _ in ticks],
            "slots": [firing.slot for _, _, firing, _ in ticks],
            "definitions": [definition.id for _, definition, _, _ in ticks],
            "revisions": [definition.revision for _, definition, _, _ in ticks],
            "outcomes": [firing.outcome for _, _, firing, _ in ticks],
            "reasons": [firing.reason for _, _, firing, _ in ticks],
            "lasts": [firing.last_slot for _, _, firing, _ in ticks],
            "counts": [firing.slots for _, _, firing, _ in ticks],
            "jobs": [row.id if row else None for _, _, _, row in ticks],
        },
    ).fetchall()
    return {tick_id for (tick_id,) in written}
