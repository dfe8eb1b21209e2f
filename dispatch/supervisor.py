"""The supervisor of a worker: starts, watches, replaces and stops its children, and renews their leases.

It is a process of its own with a connection of its own: no busy body, held lock or interpreter of a child can hold up a
renewal. It claims nothing and runs nothing.
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg

from dispatch.children import Child, ChildSettings
from dispatch.leaks import Leaks
from dispatch.shutdown import Shutdown
from jobs import db
from jobs.clock import boottime
from jobs.conf import conf
from jobs.errors import SchedulerError
from jobs.leases import declare, end, register, renew, unpark
from jobs.leases.park import BATCH as PARKED
from jobs.models.process import ProcessKind
from jobs.registry import registry
from jobs.sql import load
from jobs.steady import time

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

TURN = 0.2
"""Seconds between two looks at the children."""
SUSPECT_LOOK = 5.0
SUSPECT_IDLE = 10.0
START_SECONDS = 120.0
START_AGAIN = 5.0
"""Seconds until the next try when the system has no room for a process."""
MAX_FALSE_STARTS = 3
STUCK_LEASES = 4.0
"""A child without a beat for so many leases, and with no body running, is stuck in our own code: replace it."""


class CannotStart(SchedulerError):
    """Children end before they reach their loop: their own error is in the log above."""


class Supervisor:
    def __init__(self, settings: ChildSettings, processes: int, shutdown: Shutdown) -> None:
        self.settings, self.processes, self.shutdown = settings, processes, shutdown
        self.children: list[Child] = []
        self.dead: list[tuple[Child, bool]] = []
        """Ended children whose claims are still to be given back, and whether they crashed."""
        self._connection: Connection | None = None
        self._process_id: int | None = None
        self._renewed = boottime()
        self._renew_at = self._suspect_look_at = self._start_at = 0.0
        self._false_starts = 0
        self._parked = True
        """Something may be parked that we know."""
        self._leaks = Leaks(settings.threads)

    def run(self) -> None:
        """Work until told to drain. CannotStart when children fail before their loop."""
        threading.Thread(target=self._guard, name="guard", daemon=True).start()
        wait = 0.2
        while not self.shutdown.drain.is_set():
            try:
                self._watch()
                self._keep(self._connect())
                wait = 0.2
            except psycopg.Error as error:
                logger.warning("database lost", extra={"error": str(error).strip(), "wait": round(wait, 1)})
                self._close()
                self.shutdown.drain.wait(wait * random.uniform(0.5, 1.0))  # noqa: S311
                wait = min(2.0, wait * 2)
            self.shutdown.drain.wait(TURN)
        self._stop()

    # in a thread of its own: a database that hangs must not hold up a kill

    def _guard(self) -> None:
        """Kill what is past its hard timeout, and, shortly before the lease ends by the database's clock, what must not
        outlive it."""
        while True:
            lost = boottime() - self._renewed > conf().lease.total_seconds() - 2 * TURN
            for child in list(self.children):
                with contextlib.suppress(ValueError):  # buried meanwhile
                    child.check_deadlines()
                    if lost and child.alive and child.guarded():
                        logger.error("lease lost under a limit: killed", extra={"worker": child.process_id})
                        child.kill()
            time.sleep(TURN)

    # every turn, with or without the database

    def _watch(self) -> None:
        lease = conf().lease.total_seconds()
        for child in list(self.children):
            if not child.alive:
                self._ended(child)
                continue
            quiet = boottime() - max(child.slots.beat_at, child.born)
            if quiet > max(STUCK_LEASES * lease, START_SECONDS) and not any(child.slots.started()):
                logger.error("a worker is stuck: killed", extra={"worker": child.process_id})
                child.kill()

    def _ended(self, child: Child) -> None:
        self.children.remove(child)
        code = child.process.returncode
        crashed = code != 0
        if crashed:
            logger.error("worker ended", extra={"worker": child.process_id, "status": code})
        if child.ready:
            self._false_starts = 0
        elif child.draining_since is None:  # else it was told to end: its lease ran out while it started
            self._false_starts += 1
            if any(other.ready for other in self.children):  # it can be done: those that run go on
                self._start_at = boottime() + START_AGAIN
            elif self._false_starts >= MAX_FALSE_STARTS:
                self.dead.append((child, False))
                self._stop()
                raise CannotStart(
                    f"{MAX_FALSE_STARTS} worker processes in a row ended before they were ready"
                )
        self.dead.append((child, crashed))

    # with the database

    def _keep(self, connection: Connection) -> None:
        if boottime() >= self._renew_at:
            self._renew(connection)
        self._bury(connection)
        regular = [
            child for child in self.children if not child.settings.suspects and child.draining_since is None
        ]
        for _ in range(self.processes - len(regular)):
            self._start(connection, self.settings)
        self._unpark(connection)
        self._look_for_suspects(connection)

    def _renew(self, connection: Connection) -> None:
        lease = conf().lease.total_seconds()
        now = boottime()
        if self._process_id is None:
            self._process_id = register(
                connection, ProcessKind.SUPERVISOR, queues=self.settings.queues, types=self.settings.types
            )
            declare(connection, (each for each in registry.types() if each.name in self.settings.types))
        alive = renew(connection, [self._process_id, *(child.process_id for child in self.children)])
        self._renewed, self._renew_at = now, now + lease / 3
        if self._process_id not in alive:
            self._process_id = None
        for child in self.children:
            if child.process_id in alive:
                child.slots.renewed(now)
            elif child.draining_since is None:  # it never returns under its id: others may have its claims
                logger.error("lease expired: replacing", extra={"worker": child.process_id})
                child.drain()
        self._parked = True
        self._leaks.look(connection, [child.application_name for child in self.children])

    def _unpark(self, connection: Connection) -> None:
        """What waited for somebody who knows its type: a piece at a time, so that no renewal waits."""
        if not self._parked:
            return
        returned = unpark(connection, self.settings.types)
        self._parked = returned >= PARKED
        if returned:
            logger.info("unparked", extra={"jobs": returned})

    def _bury(self, connection: Connection) -> None:
        while self.dead:
            child, crashed = self.dead[0]
            child.bury(connection, crashed=crashed)
            self.dead.pop(0)
            self._renew_if_due(connection)  # the living must not wait for many burials

    def _start(self, connection: Connection, settings: ChildSettings) -> None:
        if boottime() < self._start_at:
            return
        if self._process_id is None:
            self._renew(connection)
        try:
            child = Child.start(connection, settings, self._process_id or 0)
        except OSError as error:  # no memory, no process, no file is left: those that run go on
            logger.error("no worker can be started", extra={"error": str(error), "wait": START_AGAIN})
            self._start_at = boottime() + START_AGAIN
            return
        self.children.append(child)
        logger.info("worker started", extra={"worker": child.process_id, "pid": child.process.pid})

    def _look_for_suspects(self, connection: Connection) -> None:
        """Entries that crashed their process twice run in a process of their own, one at a time: they harm no other,
        and no other's crash is counted against them."""
        if boottime() < self._suspect_look_at or any(child.settings.suspects for child in self.children):
            return
        self._suspect_look_at = boottime() + SUSPECT_LOOK
        row = connection.execute(
            load("suspects"), {"queues": list(self.settings.queues)}, prepare=True
        ).fetchone()
        if row and row[0]:
            self._start(
                connection,
                replace(self.settings, suspects=True, threads=1, idle_exit=SUSPECT_IDLE, listen=False),
            )

    def _connect(self) -> Connection:
        if self._connection is None or self._connection.closed:
            # Direct: a renewal must not stand in a pooler's queue.
            third = conf().lease.total_seconds() / 3
            self._connection = db.connect(
                self.settings.using, direct=True, name="punctual supervisor", generic=True, patience=third
            )
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # the end

    def _stop(self) -> None:
        """Children finish what runs within the grace period; the rest is given back at once, uncounted."""
        logger.info("draining", extra={"workers": len(self.children)})
        for child in self.children:
            child.drain()
        until = boottime() + conf().grace.total_seconds()
        while self.children and boottime() < until and not self.shutdown.leave.is_set():
            for child in list(self.children):
                if not child.alive:
                    self.children.remove(child)
                    self.dead.append((child, child.process.returncode != 0))
            self._try(self._renew_if_due)
            self.shutdown.leave.wait(TURN / 4)
        for child in self.children:
            logger.warning("grace is over: killed", extra={"worker": child.process_id})
            child.kill()
            self.dead.append((child, False))
        self.children = []
        for _ in self._tries(10.0):
            if self._try(self._bury) and self._try(self._end_row):
                break
        self._close()

    def _renew_if_due(self, connection: Connection) -> None:
        if boottime() >= self._renew_at:
            self._renew(connection)

    def _end_row(self, connection: Connection) -> None:
        if self._process_id is not None:
            end(connection, [self._process_id])

    def _try(self, step: Any) -> bool:
        """One step of the end; without the database the lease runs out and the rescuer does the rest."""
        try:
            step(self._connect())
        except psycopg.Error as error:
            logger.warning("database lost", extra={"error": str(error).strip()})
            self._close()
            return False
        return True

    def _tries(self, seconds: float) -> Iterator[None]:
        until = time.monotonic() + seconds
        while True:
            yield
            if time.monotonic() > until:
                logger.error("left without the database: claims come back when the lease ends")
                return
            time.sleep(0.2)
