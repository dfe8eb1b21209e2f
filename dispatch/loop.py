"""The shell of every loop: a connection, one pass after another, a sleep between, and no error that ends it."""

from __future__ import annotations

import logging
import random
import threading
from datetime import datetime
from typing import Any, Protocol

import psycopg
from django.db import InterfaceError, InternalError, OperationalError, reset_queries

from jobs import db
from jobs.clock import DatabaseClock, boottime
from jobs.conf import conf

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

BACKOFF = (0.2, 5.0)
"""Seconds: the first wait after an error, and the longest."""
CONFLICTS = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
CONFLICT_TRIES = 3
DJANGOS = (OperationalError, InterfaceError, InternalError)
"""What Django makes of such errors, on its connection."""


class Pass(Protocol):
    """One loop's work: a file of its own with one noun."""

    name: str
    period: float
    """Seconds between two passes that found little."""
    batch: int
    """A pass that did at least this much is followed by the next at once."""

    def run_once(self, connection: Connection, now: datetime) -> int:
        """Do one batch at the database's time `now`; returns how much was done."""

    def interrupted(self) -> None:
        """The contact to the database was lost, or a pass failed."""


class Loop:
    def __init__(self, work: Pass, using: str = "default", *, generic: bool = False) -> None:
        """`generic`: as of `db.connect`."""
        self.work, self.using, self.generic = work, using, generic
        self.clock = DatabaseClock()
        self.last_pass = boottime()
        """Boot time of the end of the last pass that did not fail."""
        self.failing = False
        """Its last pass failed and it waits to try again: it is not stuck."""
        self._connection: Connection | None = None

    def run(self, stop: threading.Event) -> None:
        """Pass after pass until told to stop."""
        failures = 0
        while not stop.is_set():
            try:
                amount = self.run_pass()
                failures = 0
                self.failing = False
                wait = 0.0 if amount >= self.work.batch else self.work.period * random.uniform(0.9, 1.0)  # noqa: S311
            except BaseException as error:  # even SystemExit: a thread that ended would be missed by nobody
                failures += 1
                self.failing = True
                wait = self._failed(error, failures)
            stop.wait(wait)
        self._close()

    def run_pass(self) -> int:
        """One pass; a deadlock or serialisation failure is tried again at once, as it was rolled back whole."""
        if self._connection is None or self._connection.closed:
            self._connection = db.connect(
                self.using,
                name=f"punctual {self.work.name}",
                generic=self.generic,
                patience=conf().lease.total_seconds(),
            )
        for attempt in range(1, CONFLICT_TRIES + 1):
            try:
                amount = self.work.run_once(self._connection, self.clock.read(self._connection))
                break
            except CONFLICTS:
                if attempt == CONFLICT_TRIES:
                    raise
        reset_queries()  # with DEBUG Django keeps each statement that goes over its connection
        self.last_pass = boottime()
        return amount

    def _failed(self, error: BaseException, failures: int) -> float:
        try:
            self.work.interrupted()
        except Exception:
            logger.exception("it could not be told", extra={"loop": self.work.name})
        self._close()
        wait: float = min(BACKOFF[1], BACKOFF[0] * 2 ** min(failures - 1, 10)) * random.uniform(0.5, 1.0)  # noqa: S311
        if isinstance(error, (*db.INFRASTRUCTURE, *DJANGOS)):
            logger.warning(
                "database lost", extra={"loop": self.work.name, "error": str(error).strip(), "wait": wait}
            )
        else:
            logger.error("pass failed", exc_info=error, extra={"loop": self.work.name, "wait": wait})
        return wait

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
