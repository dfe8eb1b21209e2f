"""Heartbeat of a dispatcher: its process row, renewed while it lives, ended when it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import psycopg

from jobs.conf import conf
from jobs.leases import end, register, renew
from jobs.models.process import ProcessKind

Connection = psycopg.Connection[Any]


class Heartbeat:
    name = "heartbeat"
    batch = 1_000_000

    def __init__(self, kind: ProcessKind, queues: Sequence[str] = (), types: Sequence[str] = ()) -> None:
        self.kind, self.queues, self.types = kind, queues, types
        self.period = conf().lease.total_seconds() / 3
        self.process_id: int | None = None

    def run_once(self, connection: Connection, now: datetime) -> int:
        if self.process_id is None or self.process_id not in renew(connection, [self.process_id]):
            self.process_id = register(connection, self.kind, queues=self.queues, types=self.types)
        return 1

    def interrupted(self) -> None:
        """The row's lease tells the others; a row found expired is replaced by a new one."""

    def end(self, connection: Connection) -> None:
        if self.process_id is not None:
            end(connection, [self.process_id])
