"""Dispatch: timers that come due within the look-ahead become queue entries, day leaf by day leaf."""

from __future__ import annotations

import logging
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg

from jobs.clock import boottime
from jobs.conf import conf
from jobs.notify import CHANNEL
from jobs.partitions import day_of, read_days
from jobs.session import bounded
from jobs.sql import for_day

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

SWEEP = 30.0
"""Seconds between two looks into the older days: a transaction that was open for long, or downtime, left a timer."""


MIDNIGHT = timedelta(minutes=5)
"""For so long a new day's passes look into the day before as well."""


class Dispatcher:
    name = "dispatch"

    def __init__(self) -> None:
        self._busy, self._idle = conf().period.total_seconds(), conf().idle_period.total_seconds()
        self.period = self._busy
        self.batch = conf().dispatch_batch
        self._days: list[date] = []
        self._swept = -SWEEP
        self._aside: set[UUID] = set()

    def run_once(self, connection: Connection, now: datetime) -> int:
        until = now + conf().look_ahead
        moved = 0
        for day in self._leaves(connection, until):
            count, earliest = self._dispatch(connection, day, until, self.batch - moved)
            moved += count
            if earliest is not None and earliest <= now + conf().idle_poll:
                connection.execute(f"NOTIFY {CHANNEL}")
            if moved >= self.batch:
                break
        if moved >= self.batch:
            self._swept = -SWEEP  # much is due, perhaps after an outage of days: look into all of them again
        self.period = self._busy if moved else self._idle
        if moved:
            logger.debug("dispatched", extra={"jobs": moved})
        return moved

    def interrupted(self) -> None:
        self._swept = -SWEEP

    def _leaves(self, connection: Connection, until: datetime) -> list[date]:
        """The days to look into, oldest first. The oldest is the oldest there is in the catalog, never derived from
        now: a timer of last month is as due as today's."""
        last = day_of(until)
        if boottime() - self._swept >= SWEEP:
            self._days = [
                day for day, leaves in read_days(connection).items() if "jobs_timer" in leaves.attached
            ]
            self._swept = boottime()
            return [day for day in self._days if day <= last]
        since = day_of(until - MIDNIGHT)
        return [day for day in self._days if since <= day <= last]

    def _dispatch(
        self, connection: Connection, day: date, until: datetime, limit: int
    ) -> tuple[int, datetime | None]:
        """Jobs moved, and the earliest run time among them. A timer whose job has an entry already breaks the
        invariant: found by halving, left where it is and reported, so that it holds up no other."""
        values = {"until": until, "limit": limit, "aside": list(self._aside)}
        try:
            with bounded(connection):
                row = connection.execute(for_day("dispatch", day), values).fetchone()
        except psycopg.errors.LockNotAvailable:  # the other days' jobs are as due as this one's
            logger.warning("a day is locked: its jobs wait", extra={"day": day.isoformat()})
            return 0, None
        except psycopg.errors.UndefinedTable:  # dropped since the catalog was read
            self._swept = -SWEEP
            return 0, None
        except psycopg.errors.UniqueViolation:
            self._swept = -SWEEP  # what is left beside it must not wait for the next look into this day
            if limit > 1:
                return self._dispatch(connection, day, until, limit // 2)
            self._set_aside(connection, day, until)
            return 0, None
        return (row[0], row[1]) if row else (0, None)

    def _set_aside(self, connection: Connection, day: date, until: datetime) -> None:
        """The first timer of the day that has an entry beside it."""
        row = connection.execute(
            for_day("timer_with_entry", day), {"until": until, "aside": list(self._aside)}
        ).fetchone()
        if row:
            self._aside.add(row[0])
            logger.error("a job has a timer and an entry: run checkjobs", extra={"job": str(row[0])})
