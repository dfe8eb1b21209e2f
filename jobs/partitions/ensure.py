"""Make days: all leaves of a day in one transaction, under one lock, beside whatever the caller has open."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import LiteralString

from django.db import connections
from psycopg import errors, sql

from jobs.conf import MAX_DAYS
from jobs.errors import DayMissing
from jobs.partitions.catalog import (
    PARENTS,
    Connection,
    bounds,
    day_of,
    identifiers,
    maintenance,
    read_days,
)
from jobs.steady import time

LOCK_CLASS = 0x6A6F6273
"""First half of the advisory lock of a day; the second is the day's ordinal."""
TRIES = 3

_INSERT_ONLY: LiteralString = (
    "fillfactor = 100, autovacuum_freeze_min_age = 0, "
    "autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 500000"
)
_CHURNING: LiteralString = (
    "vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, "
    "autovacuum_freeze_min_age = 0"
)
_CREATE: LiteralString = "CREATE TABLE {leaf} (LIKE {parent} INCLUDING ALL) WITH ({settings})"
# Never CREATE … PARTITION OF: that wants ACCESS EXCLUSIVE on the parent and waits behind any open writer.
_ATTACH: LiteralString = "ALTER TABLE {parent} ATTACH PARTITION {leaf} FOR VALUES FROM ({start}) TO ({end})"


def ensure(days: Iterable[date], using: str = "default") -> list[date]:
    """Make the days that are missing or incomplete; returns those. DayMissing when one cannot be made."""
    made: list[date] = []
    with maintenance(using) as connection:
        have = read_days(connection)
        wanted = [day for day in sorted(set(days)) if day not in have or not have[day].complete]
        for day in wanted:
            if day not in have and len(have) + len(made) >= MAX_DAYS:
                raise DayMissing(
                    f"the day {day} has no partitions and {MAX_DAYS} days exist already: schedule nearer, or expire "
                    "old days with `manage.py managepartitions expire`"
                )
            _make_with_retries(connection, day)
            made.append(day)
    return made


def ensure_days(start: date, end: date, using: str = "default") -> list[date]:
    """Make every day from `start` to `end`, both included."""
    return ensure((start + timedelta(days=n) for n in range((end - start).days + 1)), using)


def attach(connection: Connection, parent: str, day: date) -> None:
    start, end = bounds(day)
    connection.execute(
        sql.SQL(_ATTACH).format(
            **identifiers(parent, day), start=sql.Literal(start.isoformat()), end=sql.Literal(end.isoformat())
        )
    )


def finalize(connection: Connection, parent: str, day: date) -> None:
    """End a detach that was interrupted; until then no other leaf of the parent can be detached."""
    connection.execute(
        sql.SQL("ALTER TABLE {parent} DETACH PARTITION {leaf} FINALIZE").format(**identifiers(parent, day))
    )


def _make_with_retries(connection: Connection, day: date) -> None:
    connection.execute("SET lock_timeout = '2s'")
    for attempt in range(1, TRIES + 1):
        try:
            _make(connection, day)
        except errors.InsufficientPrivilege as error:
            raise DayMissing(
                f"the day {day} has no partitions and this role may not make them; an administrator runs "
                f"`manage.py managepartitions ensure --day {day}`"
            ) from error
        except errors.LockNotAvailable as error:
            if attempt == TRIES:
                raise DayMissing(
                    f"the partitions of {day} could not be made: another session has held a lock on the tables "
                    f"for {2 * TRIES} s (a manual ANALYZE, VACUUM or ALTER of a parent?); try again when it has ended"
                ) from error
            time.sleep(0.1 * attempt)
        else:
            return


def _make(connection: Connection, day: date) -> None:
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCK_CLASS, day.toordinal()])
        leaves = read_days(connection).get(day)  # again, under the lock: another process may have made it
        for parent in reversed(PARENTS):
            if leaves and parent in leaves.attached:
                continue
            if leaves and parent in leaves.pending:
                finalize(connection, parent, day)
            elif not leaves or parent not in leaves.detached:
                settings = _CHURNING if parent == "jobs_timer" else _INSERT_ONLY
                connection.execute(
                    sql.SQL(_CREATE).format(**identifiers(parent, day), settings=sql.SQL(settings))
                )
            attach(connection, parent, day)


class _Known:
    """Which days were seen complete, so that schedule() asks the catalog once a minute and not once a job."""

    TTL = 60.0

    def __init__(self) -> None:
        self._days: dict[str, tuple[float, frozenset[date]]] = {}
        self._lock = threading.Lock()

    def has(self, using: str, day: date) -> bool:
        at, days = self._days.get(using, (0.0, frozenset()))
        return time.monotonic() - at < self.TTL and day in days

    def refresh(self, using: str) -> None:
        with maintenance(using) as connection:
            complete = frozenset(day for day, leaves in read_days(connection).items() if leaves.complete)
        with self._lock:
            self._days[using] = (time.monotonic(), complete)

    def clear(self) -> None:
        self._days.clear()


known = _Known()


def require(moments: Iterable[datetime], using: str = "default") -> None:
    """See that the day of each moment exists before the caller's first write: catching the failed insert afterwards
    would have aborted the caller's transaction. DayMissing when one cannot be made; Django's errors when the database
    cannot be asked."""
    require_days({day_of(moment) for moment in moments}, using)


def require_days(days: set[date], using: str = "default") -> None:
    """The same for days."""
    if all(known.has(using, day) for day in days):
        return
    with connections[using].wrap_database_errors:
        known.refresh(using)
        if missing := [day for day in days if not known.has(using, day)]:
            ensure(missing, using)
            known.refresh(using)
