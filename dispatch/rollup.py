"""Roll up: one pass counts the minutes that have passed, what is in the queues and what comes due next.

Any number of these loops may run: the lock of the one progress row is the turn, and who does not get it does nothing.
Each step is one short transaction that moves the progress along with what it wrote. Mostly another has just done what
there was to do: one look at that row, without a lock, tells.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, LiteralString

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
Progress = dict[str, Any]
Due = Callable[[datetime, Progress], object]
Step = Callable[[Connection, datetime, Progress], int]

_COLUMNS: tuple[LiteralString, ...] = ("first", "second", "hour", "counted_at", "foreseen_at")


class Rollups:
    name = "rollup"
    period = 2.0
    batch = 2

    def __init__(self) -> None:
        self._every = {"counted_at": COUNT_EVERY, "foreseen_at": FORESEE_EVERY}

    def run_once(self, connection: Connection, now: datetime) -> int:
        """How many steps caught up; 2: there is more to do at once."""
        steps: list[tuple[Due, Step]] = [
            (self._uncounted, self._count),
            (self._unforeseen, self._foresee),
            (self._first_span, self._first),
            (self._second_span, self._second),
            (self._hour_due, self._hour),
        ]
        progress = self._progress(connection)
        if progress is None:
            self._begin(connection, now)
        elif not any(due(now, progress) for due, _ in steps):
            return 0
        return sum(self._step(connection, now, due, step) for due, step in steps)

    def interrupted(self) -> None:
        """Everything is in the tables."""

    def _begin(self, connection: Connection, now: datetime) -> None:
        """From the first pass on: what was before is not counted."""
        minute, hour = rollups.floor(now, 60), rollups.floor(now, 3600)
        connection.execute(
            "INSERT INTO jobs_rollupprogress (id, first, second, hour) VALUES (1, %s, %s, %s) ON CONFLICT DO NOTHING",
            [minute, minute, hour],
        )

    def _step(self, connection: Connection, now: datetime, due: Due, step: Step) -> int:
        with connection.transaction():
            progress = self._progress(connection, " FOR UPDATE SKIP LOCKED")
            if progress is None or not due(now, progress):  # another dispatcher is at it, or was
                return 0
            return step(connection, now, progress)

    def _progress(self, connection: Connection, lock: LiteralString = "") -> Progress | None:
        row = connection.execute(
            "SELECT " + ", ".join(_COLUMNS) + " FROM jobs_rollupprogress WHERE id = 1" + lock
        ).fetchone()
        return dict(zip(_COLUMNS, row, strict=True)) if row else None

    def _uncounted(self, now: datetime, progress: Progress) -> bool:
        return self._old(now, progress, "counted_at")

    def _unforeseen(self, now: datetime, progress: Progress) -> bool:
        return self._old(now, progress, "foreseen_at")

    def _old(self, now: datetime, progress: Progress, name: str) -> bool:
        last: datetime | None = progress[name]
        return last is None or not timedelta() <= now - last < timedelta(seconds=self._every[name])

    def _first_span(self, now: datetime, progress: Progress) -> tuple[datetime, datetime] | None:
        return self._span(progress["first"], now - SETTLED)

    def _second_span(self, now: datetime, progress: Progress) -> tuple[datetime, datetime] | None:
        return self._span(progress["second"], min(now - AGAIN, progress["first"]))

    def _span(self, start: datetime, until: datetime) -> tuple[datetime, datetime] | None:
        """The whole minutes that a step catches up on; None when there is none."""
        end = min(start + MINUTES * MINUTE, rollups.floor(until, 60))
        return (start, end) if start < end else None

    def _hour_due(self, now: datetime, progress: Progress) -> bool:
        return bool(progress["hour"] + HOUR <= progress["second"])

    def _count(self, connection: Connection, now: datetime, progress: Progress) -> int:
        begun = boottime()
        counting.count_backlog(connection)
        self._took(connection, now, "counted_at", COUNT_EVERY, boottime() - begun)
        return 0

    def _foresee(self, connection: Connection, now: datetime, progress: Progress) -> int:
        begun, start = boottime(), rollups.floor(now, 60)
        counting.foresee(connection, start, start + rollups.FORECAST)
        self._took(connection, now, "foreseen_at", FORESEE_EVERY, boottime() - begun)
        return 0

    def _took(self, connection: Connection, now: datetime, name: str, least: float, seconds: float) -> None:
        self._every[name] = max(least, SHARE * seconds)
        self._move(connection, name, now)

    def _first(self, connection: Connection, now: datetime, progress: Progress) -> int:
        span = self._first_span(now, progress)
        assert span  # noqa: S101  # it was due
        counting.count_minutes(connection, *span)
        self._move(connection, "first", span[1])
        self._prune(connection, 60, min(now - rollups.MINUTES_KEPT, progress["hour"]))
        self._prune(connection, 3600, now - rollups.HOURS_KEPT)
        return self._more(span)

    def _second(self, connection: Connection, now: datetime, progress: Progress) -> int:
        span = self._second_span(now, progress)
        assert span  # noqa: S101  # it was due
        for minute in counting.late_minutes(connection, *span):
            counting.count_minutes(connection, minute, minute + MINUTE)
        self._move(connection, "second", span[1])
        return self._more(span)

    def _more(self, span: tuple[datetime, datetime]) -> int:
        """So full a step is followed by the next at once."""
        return self.batch if span[1] - span[0] >= MINUTES * MINUTE else 0

    def _hour(self, connection: Connection, now: datetime, progress: Progress) -> int:
        counting.sum_hour(connection, progress["hour"])
        self._move(connection, "hour", progress["hour"] + HOUR)
        return 0

    def _prune(self, connection: Connection, step: int, before: datetime) -> None:
        """More than a minute brings, so that it keeps up."""
        connection.execute(
            "DELETE FROM jobs_rollup WHERE ctid = ANY(ARRAY("
            "SELECT ctid FROM jobs_rollup WHERE step = %s AND at < %s LIMIT %s))",
            [step, before, DELETE_BATCH * MINUTES],
        )

    def _move(self, connection: Connection, name: str, to: datetime) -> None:
        connection.execute(
            psycopg.sql.SQL("UPDATE jobs_rollupprogress SET {} = %s WHERE id = 1").format(
                psycopg.sql.Identifier(name)
            ),
            [to],
        )
