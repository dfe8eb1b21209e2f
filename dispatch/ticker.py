"""Tick: due cron definitions become jobs, ahead of their slots, exactly one tick row per slot.

In one transaction a definition's row is locked, its ticks and jobs are written and its cursor moves. Ids are derived
from definition, revision and slot: a second ticker can write nothing twice. A definition whose runs must not overlap
is looked at when its slot has come, and once a second while a start waits.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from django.db import connections

from jobs import declared, ledger, partitions, rezone, verbs
from jobs.arrays import int8s, texts, timestamps
from jobs.conf import conf
from jobs.cron.tzdata import version
from jobs.errors import CronError
from jobs.expanding import Definition, Expanded, Run, expand
from jobs.ids import dues_of
from jobs.sql import load

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

BATCH = 200
SHORTEST_PERIOD = 0.1
POISON = (psycopg.errors.UniqueViolation, psycopg.DataError)
"""What a single definition can be to blame for: of a slot whose job is there and whose row was deleted by hand, or of a
time that no datetime holds."""
_FIRST = (
    "SELECT id FROM jobs_crondefinition WHERE enabled AND broken = '' AND look_at <= %s ORDER BY look_at LIMIT 1 "
    "FOR NO KEY UPDATE SKIP LOCKED"
)


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
            rezone.rezone(now, self.using)
            self._synced = True
        try:
            return self._pass(connection, now, BATCH)
        except POISON:
            return self._pass_by_one(connection, now)

    def _pass(self, connection: Connection, now: datetime, limit: int) -> int:
        with connection.transaction():
            settled = ledger.settle_revisions(connection, now, BATCH, self.using)
            definitions = self._due(connection, now, limit)
            runs, ended = _runs(connection, definitions)
            expansions = {each.id: _expand(each, now, runs[each.id]) for each in definitions}
            self._write(connection, expansions, ended, now)
        cancel = [job_id for expanded in expansions.values() for job_id in expanded.cancel]
        if cancel:
            verbs.cancel(cancel, using=self.using)
        found = max(settled, len(definitions))
        self.period = self._until_next(connection, now) if found < BATCH else 0.0
        return found

    def _pass_by_one(self, connection: Connection, now: datetime) -> int:
        """One of them spoils the others': found by taking each alone, marked and left out. Its row is locked first, so
        that it is this one and no other that is tried."""
        done = 0
        while done < BATCH:
            with connection.transaction():
                row = connection.execute(_FIRST, [now]).fetchone()
                if row is None:
                    break
                try:
                    with connection.transaction():
                        self._pass(connection, now, 1)
                except POISON as error:
                    told = " ".join(str(error).split())[:500]
                    logger.error("cron definition is broken", extra={"definition": row[0], "error": told})
                    connection.execute(
                        "UPDATE jobs_crondefinition SET broken = %s WHERE id = %s", [told, row[0]]
                    )
            done += 1
        return done

    def interrupted(self) -> None:
        """Everything is in the tables. Django's connection may be as dead as the loop's."""
        connections[self.using].close()

    def _due(self, connection: Connection, now: datetime, limit: int) -> list[Definition]:
        rows = connection.execute(load("due_definitions"), {"now": now, "limit": limit}, prepare=True)
        return [Definition(*row) for row in rows.fetchall()]

    def _write(
        self,
        connection: Connection,
        expansions: dict[int, Expanded],
        ended: list[UUID],
        now: datetime,
    ) -> None:
        """The ledger first; then the jobs of ticks that are new, and the cursors."""
        ticks = [tick for expanded in expansions.values() for tick in expanded.ticks]
        retold = [tick for expanded in expansions.values() for tick in expanded.retold]
        moments = [tick.firing.slot for tick in ticks]
        partitions.require([*moments, *(tick.row.due_at for tick in ticks if tick.row)], self.using)
        if ticks or retold:
            jobs = ledger.write(connection, ticks, retold, now)
            logger.info("ticked", extra={"ticks": len(ticks), "jobs": jobs})
        if ended:
            connection.execute("DELETE FROM jobs_cronrun WHERE job_id = ANY(%s)", [ended])
        if expansions:
            _advance(connection, expansions)

    def _until_next(self, connection: Connection, now: datetime) -> float:
        """Seconds until a definition is to be looked at, so that one that is judged at its slot starts on time."""
        (at,) = connection.execute(load("next_look"), {"now": now}).fetchone() or (None,)
        idle = conf().idle_period
        wait = idle if at is None else min(idle, at - now)
        return max(SHORTEST_PERIOD, wait / timedelta(seconds=1))


def _expand(definition: Definition, now: datetime, runs: list[Run]) -> Expanded:
    """A definition that cannot be expanded is marked and left out; the others go on."""
    try:
        return expand(definition, now, runs)
    except Exception as error:
        told = {"definition": definition.id, "error": str(error)}
        expected = isinstance(error, (CronError, ValueError, OverflowError))
        logger.error("cron definition is broken", extra=told, exc_info=None if expected else error)
        return Expanded(last_slot=definition.cursor, broken=str(error)[:500])


def _runs(connection: Connection, definitions: list[Definition]) -> tuple[dict[int, list[Run]], list[UUID]]:
    """Unfinished runs and waiting starts, by definition; and which runs have ended."""
    found: dict[int, list[Run]] = defaultdict(list)
    if not definitions:
        return found, []
    rows = connection.execute(load("cron_runs"), {"ids": [each.id for each in definitions]}).fetchall()
    runs = [Run(*row) for row in rows]
    ids = [run.job_id for run in runs if run.job_id]
    open_ids: set[UUID | None] = {None}
    if ids:
        values = {"ids": ids, "dues": dues_of(ids)}
        open_ids |= {job_id for (job_id,) in connection.execute(load("unfinished"), values).fetchall()}
    for run in runs:
        if run.job_id in open_ids:
            found[run.definition_id].append(run)
    return found, [job_id for job_id in ids if job_id not in open_ids]


def _advance(connection: Connection, expansions: dict[int, Expanded]) -> None:
    moved = expansions.values()
    connection.execute(
        load("advance_definitions"),
        {
            "ids": int8s(expansions),
            "nexts": timestamps(each.next_slot for each in moved),
            "lasts": timestamps(each.last_slot for each in moved),
            "looks": timestamps(each.look_at for each in moved),
            "runs": int8s(each.runs for each in moved),
            "brokens": texts(each.broken for each in moved),
            "tz_version": version(),
        },
    )
