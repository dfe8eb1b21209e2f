"""Roll up: one pass counts the minutes that have passed, what is in the queues and what comes due next.

Any number of these loops may run: the lock of the one progress row is the turn, and who does not get it does nothing.
Each step is one short transaction that moves the progress along with what it wrote.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import psycopg

from jobs import counting, rollups
from jobs.clock import boottime
from jobs.counting import HOUR, MINUTE

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

SETTLED = timedelta(seconds=3)
"""So long after its end a minute is looked at: almost all that ended in it has been committed."""
AGAIN = timedelta(minutes=15)
"""So long after its end it is looked at again, for transactions that were open for long."""
MINUTES = 10
"""Minutes a step catches up on."""
COUNT_EVERY = 10.0
FORESEE_EVERY = 30.0
SHARE = 20.0
"""Counting the queues takes at most this part of the time."""
DELETE_BATCH = 5000
_COLUMNS = ("first", "second", "hour", "counted_at", "foreseen_at")


class Rollups:
    name = "rollup"
    period = 2.0
    batch = 2

    def __init__(self) -> None:
        self._every = {"counted_at": COUNT_EVERY, "foreseen_at": FORESEE_EVERY}

    def run_once(self, connection: Connection, now: datetime) -> int:
        """How many steps caught up; 2: there is more to do at once."""
        connection.execute(
            "INSERT INTO jobs_rollupprogress (id, first, second, hour) VALUES (1, %s, %s, %s) ON CONFLICT DO NOTHING",
            [rollups.floor(now, 60), rollups.floor(now, 60), rollups.floor(now, 3600)],
        )
        self._step(connection, now, self._count)
        self._step(connection, now, self._foresee)
        steps = self._step(connection, now, self._first) + self._step(connection, now, self._second)
        self._step(connection, now, self._hour)
        return steps

    def interrupted(self) -> None:
        """Everything is in the tables."""

    def _step(
        self,
        connection: Connection,
        now: datetime,
        step: Callable[[Connection, datetime, dict[str, Any]], int],
    ) -> int:
        with connection.transaction():
            row = connection.execute(
                f"SELECT {', '.join(_COLUMNS)} FROM jobs_rollupprogress WHERE id = 1 FOR UPDATE SKIP LOCKED"
            ).fetchone()
            if row is None:  # another dispatcher is at it
                return 0
            return step(connection, now, dict(zip(_COLUMNS, row, strict=True)))

    def _count(self, connection: Connection, now: datetime, progress: dict[str, Any]) -> int:
        return self._now_and_then(
            connection, now, progress, "counted_at", lambda: counting.count_backlog(connection)
        )

    def _foresee(self, connection: Connection, now: datetime, progress: dict[str, Any]) -> int:
        start = rollups.floor(now, 60)
        return self._now_and_then(
            connection,
            now,
            progress,
            "foreseen_at",
            lambda: counting.foresee(connection, start, start + rollups.FORECAST),
        )

    def _now_and_then(
        self,
        connection: Connection,
        now: datetime,
        progress: dict[str, Any],
        name: str,
        count: Callable[[], int],
    ) -> int:
        last = progress[name]
        if last is not None and timedelta() <= now - last < timedelta(seconds=self._every[name]):
            return 0
        begun = boottime()
        count()
        least = COUNT_EVERY if name == "counted_at" else FORESEE_EVERY
        self._every[name] = max(least, SHARE * (boottime() - begun))
        self._move(connection, name, now)
        return 1

    def _first(self, connection: Connection, now: datetime, progress: dict[str, Any]) -> int:
        start, end = self._span(progress["first"], now - SETTLED)
        if start >= end:
            return 0
        counting.count_minutes(connection, start, end)
        self._move(connection, "first", end)
        self._prune(connection, 60, min(now - rollups.MINUTES_KEPT, progress["hour"]))
        self._prune(connection, 3600, now - rollups.HOURS_KEPT)
        return int((end - start) / MINUTE >= MINUTES) * self.batch

    def _second(self, connection: Connection, now: datetime, progress: dict[str, Any]) -> int:
        start, end = self._span(progress["second"], min(now - AGAIN, progress["first"]))
        if start >= end:
            return 0
        for minute in counting.late_minutes(connection, start, end):
            counting.count_minutes(connection, minute, minute + MINUTE)
        self._move(connection, "second", end)
        return int((end - start) / MINUTE >= MINUTES) * self.batch

    def _hour(self, connection: Connection, now: datetime, progress: dict[str, Any]) -> int:
        if progress["hour"] + HOUR > progress["second"]:
            return 0
        counting.sum_hour(connection, progress["hour"])
        self._move(connection, "hour", progress["hour"] + HOUR)
        return 1

    def _prune(self, connection: Connection, step: int, before: datetime) -> None:
        """More than a minute brings, so that it keeps up."""
        connection.execute(
            "DELETE FROM jobs_rollup WHERE ctid = ANY(ARRAY("
            "SELECT ctid FROM jobs_rollup WHERE step = %s AND at < %s LIMIT %s))",
            [step, before, DELETE_BATCH * MINUTES],
        )

    def _span(self, start: datetime, until: datetime) -> tuple[datetime, datetime]:
        return start, min(start + MINUTES * MINUTE, rollups.floor(until, 60))

    def _move(self, connection: Connection, name: str, to: datetime) -> None:
        connection.execute(
            psycopg.sql.SQL("UPDATE jobs_rollupprogress SET {} = %s WHERE id = 1").format(
                psycopg.sql.Identifier(name)
            ),
            [to],
        )
