"""One VACUUM (FREEZE, ANALYZE) on each leaf after its day has ended, so that no leaf meets a wraparound vacuum."""

from __future__ import annotations

from datetime import datetime
from typing import LiteralString

from psycopg import sql

from jobs.partitions.catalog import PARENTS, bounds, maintenance, read_days
from jobs.sql import leaf

# The statistics forget after a crash: the leaf is then vacuumed once more, which is cheap on frozen pages.
_UNSEALED: LiteralString = (
    "SELECT relname FROM pg_stat_user_tables WHERE relname = ANY(%s) AND last_vacuum IS NULL"
)


def seal(now: datetime, using: str = "default") -> list[str]:
    """Vacuum the leaves of ended days that were not yet; returns their names."""
    with maintenance(using) as connection:
        names = [
            leaf(parent, day)
            for day, leaves in read_days(connection).items()
            if bounds(day)[1] <= now
            for parent in PARENTS
            if parent in leaves.attached
        ]
        todo = [name for (name,) in connection.execute(_UNSEALED, [names]).fetchall()]
        for name in todo:
            connection.execute(sql.SQL("VACUUM (FREEZE, ANALYZE) {}").format(sql.Identifier(name)))
    return todo
