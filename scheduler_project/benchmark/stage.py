"""What every workload works with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from jobs import db
from jobs.conf import conf
from scheduler_project.benchmark.client import TENANTS, Client
from scheduler_project.benchmark.database import own_database
from scheduler_project.benchmark.fleet import Fleet, fleet
from scheduler_project.benchmark.ledger import VARIABLE, Ledger
from scheduler_project.benchmark.runs import Run, read_runs

Connection = psycopg.Connection[Any]

ROOM = 4_000_000
"""Jobs that the ledger has room for at least; it takes the space of those that there are."""
WARM_UP = 20
"""Jobs that a fleet runs before anything is measured."""

_SETTINGS = (
    "server_version",
    "synchronous_commit",
    "fsync",
    "full_page_writes",
    "shared_buffers",
    "wal_compression",
)


@dataclass
class Stage:
    jobs: int | None
    """How many the user asked for."""
    full: bool
    folder: Path
    connection: Connection
    client: Client
    say: Callable[[str], None]

    def count(self, default: int) -> int:
        return self.jobs or default

    def runs(self, numbers: range) -> list[Run]:
        """From when to when these ran, if they are of the kind that sleeps."""
        return read_runs(self.folder / "runs", numbers)

    def parameters(self, **values: Any) -> dict[str, Any]:
        """With what another machine would need to know of this one."""
        server = {}
        for name in _SETTINGS:
            row = self.connection.execute("SELECT current_setting(%s)", [name]).fetchone()
            server[name] = row and row[0]
        return {
            **values,
            "tenants": TENANTS,
            "worker_processes": conf().processes,
            "worker_threads": conf().threads,
            "server": server,
            "cores": os.cpu_count(),
        }

    def checkpoint(self) -> None:
        """So that none begins in the middle, where we may ask for one."""
        with suppress(psycopg.errors.InsufficientPrivilege):
            self.connection.execute("CHECKPOINT")

    @contextmanager
    def fleet(self, dispatchers: int = 1, processes: int | None = None) -> Iterator[Fleet]:
        """Processes that have run a few jobs and are idle."""
        self.say(f"starting {dispatchers} dispatcher{'s' * (dispatchers > 1)} and a worker")
        log = self.folder / "log"
        with fleet(self.connection, log, dispatchers=dispatchers, processes=processes) as started:
            self.client.warm_up(WARM_UP, started)
            started.wait_until_idle()
            yield started


@contextmanager
def stage(jobs: int | None, folder: Path, say: Callable[[str], None], *, full: bool) -> Iterator[Stage]:
    """A database, a ledger and a client for one workload."""
    say("making a database")
    ledger = Ledger.create(folder / "ledger", max(ROOM, 10 * (jobs or 0)))
    with own_database(), db.connect(name="punctual benchmark") as connection:
        os.environ[VARIABLE] = str(folder / "ledger")
        yield Stage(jobs, full, folder, connection, Client(connection, ledger, say), say)
