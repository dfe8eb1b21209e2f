"""The tick ledger: written first, in the transaction of what it tells of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg

from jobs import partitions
from jobs.arrays import int8s, texts, timestamps, uuids
from jobs.bulk import insert_many
from jobs.conf import conf
from jobs.errors import CronError
from jobs.expanding import Tick, rule_of, tick_id
from jobs.firing import MISSED, SKIPPED, Firing, untold
from jobs.newjob import clamp
from jobs.sql import load

Connection = psycopg.Connection[Any]
_MOMENT = timedelta(microseconds=1)


def write(connection: Connection, ticks: Sequence[Tick], retold: Sequence[Tick], now: datetime) -> int:
    """Write the ticks, and the jobs of those that are new; returns how many jobs. A slot that was written before gives
    no row, and then nothing else is written for it."""
    new = _insert(connection, ticks)
    _retell(connection, retold)
    born = [tick for tick in ticks if tick.id in new] + list(retold)
    rows = [tick.row for tick in born if tick.row is not None]
    with connection.cursor() as cursor:
        insert_many(cursor, rows, now + conf().look_ahead)
        _keep_runs(cursor, [tick for tick in born if tick.exclusive], now)
    return len(rows)


def settle_revisions(connection: Connection, now: datetime, limit: int, using: str) -> int:
    """Tell, in one range row each, of the slots that passed under rules no longer in force; returns how many rules."""
    rows = connection.execute(load("open_revisions"), {"limit": limit}, prepare=True).fetchall()
    if not rows:
        return 0
    ticks = [tick for row in rows for tick in _untold(row, now)]
    partitions.require([tick.firing.slot for tick in ticks], using)
    _insert(connection, ticks)
    connection.execute(
        "UPDATE jobs_cronrevision SET settled = true WHERE id = ANY(%s)", [[row[0] for row in rows]]
    )
    return len(rows)


def _untold(row: Sequence[Any], now: datetime) -> list[Tick]:
    _, definition_id, revision, *rule, start_at, end_at, enabled, broken, cursor, until = row
    try:
        recurrence = rule_of(*rule)
    except (CronError, ValueError, OverflowError):
        return []  # it has no slots
    if start_at is not None:
        cursor = max(cursor, start_at - _MOMENT)
    outcome, reason = (
        (SKIPPED, "paused") if not enabled else (MISSED, "overdue when the definition was changed")
    )
    if broken:
        outcome, reason = MISSED, f"broken: {broken}"[:200]
    found = untold(
        recurrence,
        cursor=max(cursor, clamp(cursor, now)),
        until=until if end_at is None else min(until, end_at),
        outcome=outcome,
        reason=reason,
    )
    return [
        Tick(tick_id(definition_id, revision, each.slot), definition_id, revision, each, outcome, reason)
        for each in found
    ]


def _insert(connection: Connection, ticks: Sequence[Tick]) -> set[UUID]:
    if not ticks:
        return set()
    firings: list[Firing] = [tick.firing for tick in ticks]
    written = connection.execute(
        load("ticks"),
        {
            "ids": uuids(tick.id for tick in ticks),
            "slots": timestamps(firing.slot for firing in firings),
            "definitions": int8s(tick.definition_id for tick in ticks),
            "revisions": int8s(tick.revision for tick in ticks),
            "outcomes": texts(tick.outcome for tick in ticks),
            "reasons": texts(tick.reason for tick in ticks),
            "lasts": timestamps(firing.last_slot for firing in firings),
            "counts": int8s(firing.slots for firing in firings),
            "jobs": uuids(tick.job_id for tick in ticks),
        },
    ).fetchall()
    return {tick_id for (tick_id,) in written}


def _retell(connection: Connection, ticks: Sequence[Tick]) -> None:
    if not ticks:
        return
    connection.execute("DELETE FROM jobs_cronrun WHERE tick_id = ANY(%s)", [[tick.id for tick in ticks]])
    connection.execute(
        load("retell_ticks"),
        {
            "ids": [tick.id for tick in ticks],
            "slots": [tick.firing.slot for tick in ticks],
            "outcomes": [tick.outcome for tick in ticks],
            "reasons": [tick.reason for tick in ticks],
            "jobs": [tick.job_id for tick in ticks],
        },
    )


def _keep_runs(cursor: Any, ticks: Sequence[Tick], now: datetime) -> None:
    """Those that started and those that wait: the next slot is judged against them."""
    kept = [tick for tick in ticks if tick.row is not None or tick.outcome == "waiting"]
    if kept:
        cursor.executemany(
            "INSERT INTO jobs_cronrun (tick_id, definition_id, revision, slot, job_id, asked) "
            "VALUES (%s, %s, %s, %s, %s, %s)",
            [
                (tick.id, tick.definition_id, tick.revision, tick.firing.slot, tick.job_id, tick.asked)
                for tick in kept
            ],
        )
