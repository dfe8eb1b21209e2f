"""Days and their leaves, as the catalog has them. A day is a UTC date, whatever the session's time zone says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from jobs import db
from jobs.sql import leaf

Connection = psycopg.Connection[Any]

# The outcome goes first when a day is taken apart: from then on no retry can bring a job of the day back.
KEYS: dict[str, str] = {
    "jobs_outcome": "due_at",
    "jobs_attempt": "due_at",
    "jobs_timer": "due_at",
    "jobs_job": "due_at",
    "jobs_crontick": "slot",
}
PARENTS = tuple(KEYS)
ALARM_DAYS = 800

_NAME = re.compile(r"__(\d{4})_(\d\d)_(\d\d)$")

# Every table that bears a leaf's name beside its parent, attached or not.
_LEAVES: LiteralString = """
    SELECT p.relname, c.relname, i.inhrelid IS NOT NULL, coalesce(i.inhdetachpending, false)
    FROM unnest(%s::text[]) parent(name)
    JOIN pg_class p ON p.oid = to_regclass(parent.name)
    JOIN pg_class c ON c.relnamespace = p.relnamespace AND c.relkind = 'r' AND starts_with(c.relname, p.relname || '__')
    LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = p.oid
"""


@dataclass
class DayLeaves:
    """The leaves of one day, by parent."""

    day: date
    attached: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    detached: set[str] = field(default_factory=set)

    @property
    def complete(self) -> bool:
        return self.attached == set(PARENTS)


def bounds(day: date) -> tuple[datetime, datetime]:
    """[start, end) of a day in UTC."""
    start = datetime.combine(day, time.min, UTC)
    return start, start + timedelta(days=1)


def day_of(moment: datetime) -> date:
    return moment.astimezone(UTC).date()


def read_days(connection: Connection) -> dict[date, DayLeaves]:
    """Every day that has at least one leaf, oldest first."""
    days: dict[date, DayLeaves] = {}
    for parent, name, attached, pending in connection.execute(_LEAVES, [list(PARENTS)]).fetchall():
        match = _NAME.search(name)
        if not match or name != parent + match[0]:
            continue
        day = date(*map(int, match.groups()))
        leaves = days.setdefault(day, DayLeaves(day))
        (leaves.pending if pending else leaves.attached if attached else leaves.detached).add(parent)
    return dict(sorted(days.items()))


def identifiers(parent: str, day: date) -> dict[str, sql.Identifier]:
    return {"parent": sql.Identifier(parent), "leaf": sql.Identifier(leaf(parent, day))}


@contextmanager
def maintenance(using: str) -> Iterator[Connection]:
    """A connection for DDL: direct, our own, never the caller's transaction."""
    connection = db.connect(using, direct=True, name="punctual partitions")
    try:
        yield connection
    finally:
        connection.close()
