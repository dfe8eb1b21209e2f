"""Drop days that are older than the retention and hold no unfinished job.

Per day: check, detach the outcome leaf first (from then on no retry can bring a job back), then the others, check
again in a new snapshot, and only then drop; if something is there after all, attach everything again. Each step is
found again from the catalog after a crash. One maintainer at a time; whoever comes second returns at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, LiteralString

from psycopg import errors, sql

from jobs.conf import conf
from jobs.ids import first_id
from jobs.partitions.catalog import (
    PARENTS,
    Connection,
    DayLeaves,
    bounds,
    identifiers,
    maintenance,
    read_days,
)
from jobs.partitions.ensure import LOCK_CLASS, attach, finalize
from jobs.sql import leaf

LONG_TRANSACTION = timedelta(seconds=5)

_BLOCKERS: LiteralString = """
    SELECT DISTINCT a.pid
    FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'relation' AND l.relation = %s::regclass AND a.pid <> pg_backend_pid()
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND a.xact_start < clock_timestamp() - %s::interval
"""


@dataclass
class Expired:
    """What one round did, by day; `blocked` says by whom."""

    dropped: list[date] = field(default_factory=list)
    kept: dict[date, str] = field(default_factory=dict)
    blocked: dict[date, str] = field(default_factory=dict)


class Blocked(Exception):
    """Something else holds the tables; try again in the next round."""


def expired_before(now: datetime) -> datetime:
    """Days that end at or before this are past the retention."""
    return now - conf().retention


def expire(now: datetime, using: str = "default") -> Expired:
    report = Expired()
    with maintenance(using) as connection:
        locked = connection.execute("SELECT pg_try_advisory_lock(%s, 0)", [LOCK_CLASS]).fetchone()
        if not locked or not locked[0]:
            return report
        days = read_days(connection)
        for day, leaves in days.items():
            try:
                for parent in leaves.pending:
                    finalize(connection, parent, day)
                    leaves.detached.add(parent)
                leaves.pending.clear()
                if bounds(day)[1] <= expired_before(now):
                    _expire_day(connection, leaves, report)
                elif leaves.detached:
                    _attach_again(connection, leaves)
            except Blocked as error:
                report.blocked[day] = str(error)
    return report


def _expire_day(connection: Connection, leaves: DayLeaves, report: Expired) -> None:
    if reason := unfinished(connection, leaves):
        _attach_again(connection, leaves)
        report.kept[leaves.day] = reason
        return
    for parent in PARENTS:
        if parent in leaves.attached:
            _detach(connection, parent, leaves.day)
            leaves.attached.remove(parent)
            leaves.detached.add(parent)
    if reason := unfinished(connection, leaves):
        _attach_again(connection, leaves)
        report.kept[leaves.day] = reason
        return
    # In one statement: a day that is dropped by half could not be put together again.
    tables = [identifiers(parent, leaves.day)["leaf"] for parent in PARENTS if parent in leaves.detached]
    connection.execute(sql.SQL("DROP TABLE {}").format(sql.SQL(", ").join(tables)))
    report.dropped.append(leaves.day)


def unfinished(connection: Connection, leaves: DayLeaves) -> str:
    """Why the day must stay: empty text when every job of it has ended."""
    timers = 0
    if "jobs_timer" in leaves.attached | leaves.detached:
        name = sql.Identifier(leaf("jobs_timer", leaves.day))
        timers = _count(
            connection, sql.SQL("SELECT count(*) FROM (SELECT FROM {} LIMIT 10001) t").format(name), []
        )
    entries = _count(
        connection,
        sql.SQL(
            "SELECT count(*) FROM (SELECT FROM jobs_queueentry WHERE job_id >= %s AND job_id < %s LIMIT 10001) e"
        ),
        [first_id(moment) for moment in bounds(leaves.day)],
    )
    if not timers + entries:
        return ""
    return f"{timers} scheduled and {entries} queued jobs have not ended"


def _count(connection: Connection, query: sql.Composed | sql.SQL, params: list[Any]) -> int:
    row = connection.execute(query, params).fetchone()
    return int(row[0]) if row else 0


def _detach(connection: Connection, parent: str, day: date) -> None:
    """No lock_timeout and no statement_timeout: either would leave the leaf half detached. So look first."""
    blockers = connection.execute(_BLOCKERS, [parent, LONG_TRANSACTION]).fetchall()
    if blockers:
        raise Blocked(
            f"{parent}: in use by a long transaction of pid {', '.join(str(pid) for (pid,) in blockers)}"
        )
    connection.execute("SET lock_timeout = 0; SET statement_timeout = 0")
    try:
        connection.execute(
            sql.SQL("ALTER TABLE {parent} DETACH PARTITION {leaf} CONCURRENTLY").format(
                **identifiers(parent, day)
            )
        )
    except (errors.ObjectNotInPrerequisiteState, errors.QueryCanceled, errors.DeadlockDetected) as error:
        raise Blocked(f"{parent}: {error.diag.message_primary}") from error


def _attach_again(connection: Connection, leaves: DayLeaves) -> None:
    for parent in PARENTS:
        if parent in leaves.detached:
            attach(connection, parent, leaves.day)
            leaves.detached.remove(parent)
            leaves.attached.add(parent)
