"""The storm's own PostgreSQL."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import Any

import psycopg

from jobs.clock import boottime
from scheduler_project import embedded
from scheduler_project.embedded import account, presence, processes
from scheduler_project.embedded.place import locate
from tests.waiting import wait_until

UNLIMITED = (
    "-c statement_timeout=0 -c lock_timeout=0 -c transaction_timeout=0 -c default_transaction_read_only=off"
)
SETTINGS = {"deadlock_timeout": "200ms", "max_connections": "250", "log_min_messages": "fatal"}
INSISTENCE = 120.0
"""Seconds."""
OURS = "storm"
"""application_name of the storm's own sessions, which it spares."""


class Server:
    def __init__(self, data: Path) -> None:
        self.data, self.url = data, embedded.uri(data)

    @property
    def sockets(self) -> Path:
        return locate(self.data).sockets

    @property
    def socket(self) -> Path:
        return locate(self.data).socket_files[0]

    @property
    def account(self) -> str | None:
        """Whom it runs as; None: as we do."""
        found = account.find(locate(self.data).data)
        return found.name if found else None

    def start(self) -> None:
        embedded.start(self.data, durable=True, settings=SETTINGS)

    def send(self, number: signal.Signals) -> None:
        """To the postmaster, and wait until nothing of the server is left."""
        if postmaster := processes.find(locate(self.data).name).postmaster:
            with suppress(ProcessLookupError):
                os.kill(postmaster, number)
        wait_until(lambda: presence.is_gone(locate(self.data)), what="the end of PostgreSQL")

    @contextmanager
    def session(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(
            self.url, autocommit=True, application_name=OURS, options=UNLIMITED
        ) as connection:
            yield connection

    def execute(self, *statements: str) -> None:
        with self.session() as connection:
            for statement in statements:
                connection.execute(statement)

    def insist(self, *statements: str) -> None:
        """As an administrator who is refused a lock, or whose statement meets a deadlock, and says it again."""
        with self.session() as connection:
            connection.execute("SET lock_timeout = '5s'")
            for statement in statements:
                until = boottime() + INSISTENCE
                while True:
                    try:
                        connection.execute(statement)
                        break
                    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
                        if boottime() > until:
                            raise

    def remove(self) -> None:
        place = locate(self.data)
        processes.find(place.name).send(signal.SIGKILL)
        presence.end(place, patience=0)
        for folder in (place.sockets, place.data):
            rmtree(folder, ignore_errors=True)
