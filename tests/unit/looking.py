"""A server whose clock, snapshots and entries a test says, for the looks of a claimer."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast
from uuid import UUID

import psycopg

from jobs.clock import DatabaseClock
from jobs.leases.looks import Looks
from jobs.leases.ring import Pair, Ring
from tests.statements import name_of
from tests.unit.test_ring import at

Connection = psycopg.Connection[Any]
PAIR: Pair = (1, 0)


class Time:
    """Stands for the module in jobs.leases.looks."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


TIME = Time()


class Server:
    """`next_xid`: the next transaction's number; `xmin`: that of the oldest one that is open, or the same."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.xmin = self.next_xid = 100
        self.takes = 0.0
        self.answers: dict[str, list[tuple[Any, ...]]] = {}
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.meanwhile: Any = None

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.sent]

    def last(self, name: str) -> dict[str, Any]:
        """With what a statement was sent last."""
        return next(values for each, values in reversed(self.sent) if each == name)

    def finds(
        self,
        statement: str,
        seconds: float,
        number: int | None = None,
        *,
        pair: Pair = PAIR,
        queue: str = "q",
        flag: bool = False,
        limited: bool = False,
    ) -> None:
        """From now on this statement tells of an entry that is due then."""
        job_id = None if number is None else UUID(int=number)
        row = (queue, *pair, at(seconds), job_id, flag, 1, limited)
        self.answers.setdefault(statement, []).append(row)

    def passes(self, seconds: float) -> None:
        self.seconds += seconds
        TIME.now += seconds

    def execute(self, statement: Any, values: dict[str, Any], **options: Any) -> Server:
        name = name_of(statement)
        assert name
        self.sent.append((name, values))
        self._rows = [
            (self.clock, self.clock, self.xmin, self.next_xid, *row)
            for row in self.answers.get(name) or [("q", *[None] * 7)]
        ]
        self.passes(self.takes)
        if self.meanwhile:
            self.meanwhile()
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows

    @property
    def clock(self) -> datetime:
        return at(self.seconds)

    @property
    def connection(self) -> Connection:
        return cast(Connection, self)


def looks_of(server: Server, *queues: str) -> Looks:
    """After its first look, which was a hop."""
    looks = Looks(queues or ["q"], ["test.noop"], clock=DatabaseClock())
    looks.look(server.connection)
    return looks


def ring_of(looks: Looks) -> Ring:
    return looks.lines["q"].ring


def look_after(looks: Looks, server: Server, seconds: float) -> list[str]:
    """What the look sends that comes after so long."""
    server.passes(seconds)
    before = len(server.sent)
    looks.look(server.connection)
    return server.names[before:]
