"""The processes under test: `manage.py rundispatcher` and `runworker` with default settings."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from jobs.conf import conf
from jobs.errors import SchedulerError
from scheduler_project.benchmark.meter import tree_cpu
from scheduler_project.benchmark.work.tasks import NOOP
from scheduler_project.children import ROOT, TiedChildren

Connection = psycopg.Connection[Any]

MANAGE = str(ROOT / "manage.py")
STARTING = 120.0
"""Seconds that the processes have to reach their loops."""
LOOK, IDLE = 0.5, 0.1
"""They are idle when in so many seconds all of them together used no larger share of one core."""
PATIENCE = 40.0
SAID = 2000
"""Characters of their log that are shown when something went wrong."""

_READY = """
    SELECT count(*) FILTER (WHERE application_name = 'punctual dispatch') >= %(dispatchers)s
        AND count(DISTINCT application_name) FILTER (WHERE application_name LIKE 'punctual worker %%') >= %(workers)s
    FROM pg_stat_activity WHERE datname = current_database()
"""


class Failed(SchedulerError):
    """The benchmark cannot go on."""


class Fleet(TiedChildren):
    def __init__(self, connection: Connection, log: Path) -> None:
        super().__init__(log)
        self.connection = connection
        self._dispatchers = self._workers = 0

    def add_worker(self, processes: int | None = None) -> None:
        """`processes`: instead of the settings' number."""
        self._workers += processes or conf().processes
        more = ["--processes", str(processes)] if processes else []
        self.start("the worker", [MANAGE, "runworker", "--queues", NOOP, *more])

    def add_dispatchers(self, count: int) -> None:
        for _ in range(count):
            self._dispatchers += 1
            self.start(f"dispatcher {self._dispatchers}", [MANAGE, "rundispatcher"])

    def wait_until_idle(self) -> None:
        """Until all have reached their loops and done what they do first."""
        until = time.monotonic() + STARTING
        while not (self._are_ready() and self._are_idle()):
            self.check()
            if time.monotonic() > until:
                raise Failed(f"the processes were not up and idle within {STARTING:.0f} s{self._said()}")

    def check(self) -> None:
        """Failed when one of them is gone."""
        if ended := self.ended():
            raise Failed(f"{ended}, and nobody had asked it to{self._said()}")

    def _are_ready(self) -> bool:
        row = self.connection.execute(
            _READY, {"dispatchers": self._dispatchers, "workers": self._workers}
        ).fetchone()
        return bool(row and row[0])

    def _are_idle(self) -> bool:
        before = tree_cpu(self.pids) or 0.0
        time.sleep(LOOK)
        return (tree_cpu(self.pids) or 0.0) - before <= IDLE * LOOK

    def _said(self) -> str:
        said = self.log.read_text(errors="replace")[-SAID:].strip()
        return f":\n{said}" if said else ""


@contextmanager
def fleet(
    connection: Connection, log: Path, *, dispatchers: int = 1, processes: int | None = None
) -> Iterator[Fleet]:
    """One worker with its default processes, or so many, and dispatchers: up and idle when the block begins, gone after it."""
    started = Fleet(connection, log)
    try:
        started.add_dispatchers(dispatchers)
        started.add_worker(processes)
        started.wait_until_idle()
        yield started
    finally:
        started.stop(PATIENCE)
