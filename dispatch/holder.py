"""Hold: what waits of held types and groups is parked, and comes back, at full speed or at a rate, when its hold ends."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg

from jobs import notify
from jobs.clock import boottime
from jobs.leases import Targets, admit, drain, park_held, unpark_held
from jobs.leases.held import BATCH
from jobs.results import Key
from jobs.sql import load

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

PERIOD, DRAINING = 1.0, 0.25
"""Seconds between two passes, and while something drains at a rate."""
SWEEP = 10.0
"""Seconds between two looks at all that waits, or so many times as one takes:"""
SWEEP_SHARE = 20
BACK = timedelta(seconds=2)
"""How far each look reaches back behind the one before."""
LONG_AGO = timedelta(days=10 * 365)
KINDS = ("type", "group")
"""Scopes whose entries are parked; of the others the claim sees to the rate itself."""
_OPEN = (
    "SELECT id, scope, key, drain, until, until IS NULL OR until > clock_timestamp() FROM jobs_hold "
    "WHERE drained_at IS NULL AND since <= clock_timestamp() ORDER BY id"
)


class Open(NamedTuple):
    """A hold that is in force, or has ended and left something waiting."""

    id: int
    scope: str
    key: str
    drain: int | None
    until: datetime | None
    stands: bool


class Holder:
    """Claims ask for holds themselves; this keeps what is held out of their way. Several of these side by side do the
    same work twice and no harm."""

    name = "hold"

    def __init__(self, using: str = "default") -> None:
        self.using = using
        self.period, self.batch = PERIOD, BATCH
        self._held = Targets()
        self._since: datetime | None = None
        self._swept, self._sweeping = -SWEEP, 0.0

    def run_once(self, connection: Connection, now: datetime) -> int:
        begun = boottime()
        holds = [Open(*row) for row in connection.execute(_OPEN, prepare=True).fetchall()]
        held = Targets.of((each.scope, each.key) for each in holds if each.stands)
        sweeps = held != self._held or begun - self._swept >= max(SWEEP, SWEEP_SHARE * self._sweeping)
        moved, keys = self._park(connection, held, now, everything=sweeps)
        ending = [each for each in holds if not each.stands]
        for each in ending:
            back, more = self._lift(connection, each, held)
            moved += back
            keys |= more
        if sweeps:  # what was parked by one that had not heard of the end
            known = Targets.of((each.scope, each.key) for each in holds)
            back, more = unpark_held(connection, None, known)
            moved += back
            keys |= more
        if keys:
            admit(connection, keys, self.using)
        if moved < self.batch:
            self._held, self._since = held, now
            if sweeps:
                self._swept = boottime()
                self._sweeping = self._swept - begun
        self.period = DRAINING if any(each.drain and each.scope in KINDS for each in ending) else PERIOD
        if moved:
            logger.info("holds", extra={"jobs": moved, "standing": len(holds) - len(ending)})
        return moved

    def interrupted(self) -> None:
        self._swept = -SWEEP

    def _park(
        self, connection: Connection, held: Targets, now: datetime, *, everything: bool
    ) -> tuple[int, set[Key]]:
        if not held:
            return 0, set()
        since = now - LONG_AGO if everything or self._since is None else self._since - BACK
        return park_held(connection, held, since, now)

    def _lift(self, connection: Connection, ended: Open, held: Targets) -> tuple[int, set[Key]]:
        """Let go of what it held; it is over when nothing is left."""
        if ended.scope not in KINDS:
            if ended.drain is None or not self._waits(connection, ended):
                self._over(connection, ended)
            return 0, set()
        targets = Targets.of([(ended.scope, ended.key)])
        if ended.drain is None:
            back, keys = unpark_held(connection, targets, held)
        else:
            back, keys = drain(connection, ended.id, ended.drain, targets, held)
        if back and notify.due(self.using):
            connection.execute(f"NOTIFY {notify.CHANNEL}")
        if not back and not self._left(connection, targets, held):
            self._over(connection, ended)
        return back, keys

    def _over(self, connection: Connection, ended: Open) -> None:
        over = "UPDATE jobs_hold SET drained_at = clock_timestamp() WHERE id = %s AND drained_at IS NULL"
        connection.execute(over, [ended.id])
        connection.execute("DELETE FROM jobs_ratebucket WHERE scope = 'hold' AND key = %s", [str(ended.id)])

    def _waits(self, connection: Connection, ended: Open) -> bool:
        values = {"scope": ended.scope, "key": ended.key, "until": ended.until}
        row = connection.execute(load("backlog"), values).fetchone()
        return bool(row and row[0])

    def _left(self, connection: Connection, targets: Targets, held: Targets) -> bool:
        row = connection.execute(
            "SELECT EXISTS (SELECT FROM jobs_queueentry WHERE parked = 'hold' "
            'AND (job_type = ANY(%s) OR "group" = ANY(%s)) '
            "AND job_type <> ALL(%s) AND coalesce(\"group\", '') <> ALL(%s))",
            [list(targets.types), list(targets.groups), list(held.types), list(held.groups)],
        ).fetchone()
        return bool(row and row[0])
