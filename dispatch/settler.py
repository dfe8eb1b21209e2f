"""Settle what bodies ended with: many in one transaction, by a thread and a connection of its own.

A result is kept until it is written or another process has taken the job over: a lost database is waited for, and one
bad row never holds up its batch.
"""

from __future__ import annotations

import logging
import queue
import random
import threading
from collections import defaultdict
from collections.abc import Callable
from datetime import date
from typing import Any
from uuid import UUID

import psycopg

from dispatch.late import Late
from jobs import db
from jobs.conf import conf
from jobs.ids import day_of_id
from jobs.leases import Settled, admit, settle
from jobs.results import Completed, Failed, Settlement
from jobs.steady import time
from jobs.text import describe_exception

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

BATCH = 500
GATHER = 0.01
"""Seconds between two writes: what comes alone is written at once, what comes in numbers gathers."""
RETRY = (0.1, 5.0)
_THESE = "SELECT job_id FROM jobs_queueentry WHERE job_id = ANY(%s)"


class Settler:
    def __init__(
        self, using: str, name: str, settled: Callable[[Settled], None], admitted: Callable[[], None]
    ) -> None:
        self.using, self.name = using, name
        self._settled, self._admitted = settled, admitted
        self._results: queue.SimpleQueue[Settlement | None] = queue.SimpleQueue()
        self._connection: Connection | None = None
        self._late = Late()
        self._blocked = False
        """The last try to write what is late met somebody's lock."""
        self._written_at = 0.0
        self._thread = threading.Thread(target=self._run, name="settler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def put(self, settlement: Settlement) -> None:
        self._results.put(settlement)

    def finish(self) -> None:
        """Settle what is there and end, however long the database is away: the supervisor bounds the time."""
        self._results.put(None)
        self._thread.join()

    def _run(self) -> None:
        ended = False
        while not ended:
            batch, ended = self._gather()
            if batch:
                self._write(batch)
                self._written_at = time.monotonic()
            if self._late.due_in == 0.0:
                self._try_again()
        for _ in range(2):  # as they are, and what they were replaced by
            self._try_again()
        while self._blocked:  # a lock has been waited for, and has an end
            self._try_again()
        if self._connection is not None:
            self._connection.close()

    def _gather(self) -> tuple[list[Settlement], bool]:
        try:
            first = self._results.get(timeout=self._late.due_in)
        except queue.Empty:
            return [], False
        if first is None:
            return [], True
        batch, until = [first], self._written_at + GATHER
        while len(batch) < BATCH:
            try:
                more = self._results.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                break
            if more is None:
                return batch, True
            batch.append(more)
        return batch, False

    def _try_again(self) -> None:
        """By themselves: they spoil no other batch."""
        self._blocked = False
        if results := self._late.take():
            self._write(results)
            self._late.tried()
            if self._late:
                logger.error("results still cannot be written", extra={"results": len(self._late)})

    def _write(self, batch: list[Settlement]) -> None:
        """Write the batch, however long the database is away; halve it when one row spoils it."""
        wait = RETRY[0]
        while True:
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = db.connect(
                        self.using, name=self.name, generic=True, patience=conf().lease.total_seconds()
                    )
                settled = settle(self._connection, batch)
                break
            except psycopg.errors.LockNotAvailable:
                self._step_aside(batch)
                return
            except db.BROKEN as error:
                self._divide(batch, error)
                return
            except db.INFRASTRUCTURE as error:
                logger.warning("results wait", extra={"results": len(batch), "error": str(error).strip()})
                self._close()
                time.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311
                wait = min(RETRY[1], wait * 2)
            except Exception as error:  # the server refused it, or it could not even be sent
                self._divide(batch, error)
                return
        self._settled(settled)
        self._admit(settled)

    def _admit(self, settled: Settled) -> None:
        """Others of their concurrency keys may run now. The results are written: what fails here, a dispatcher does."""
        keys = settled.keys
        if not keys or self._connection is None:
            return
        try:
            if admit(self._connection, keys, self.using):
                self._admitted()
        except psycopg.Error as error:
            logger.warning("admission is left to a dispatcher", extra={"error": str(error).strip()})
            self._close()

    def _step_aside(self, batch: list[Settlement]) -> None:
        """Somebody has locked some of these jobs, or a day: their results wait for him, the others' do not."""
        days: dict[date, list[Settlement]] = defaultdict(list)
        locked = self._locked({each.held.job_id for each in batch})
        for each in batch:
            if each.held.job_id not in locked:
                days[day_of_id(each.held.job_id)].append(each)
        if not locked and len(days) == 1:
            days, locked = {}, {each.held.job_id for each in batch}
        if locked:
            self._blocked = True
            waiting = [each for each in batch if each.held.job_id in locked]
            new = [self._late.add(each) for each in waiting]
            if any(new):
                logger.warning("results wait for a lock", extra={"results": len(waiting)})
        for some in days.values():
            self._write(some)

    def _locked(self, ids: set[UUID]) -> set[UUID]:
        """Those of these jobs whose entries are locked by somebody else."""
        if self._connection is None:
            return set()
        try:
            there, free = (
                {job_id for (job_id,) in self._connection.execute(f"{_THESE} {skip}", [list(ids)]).fetchall()}
                for skip in ("", "FOR UPDATE SKIP LOCKED")
            )
        except psycopg.Error:
            return set()
        return there - free

    def _divide(self, batch: list[Settlement], error: Exception) -> None:
        if len(batch) > 1:
            half = len(batch) // 2
            self._write(batch[:half])
            self._write(batch[half:])
            return
        (settlement,) = batch
        its_own = isinstance(error, psycopg.DataError) or not isinstance(error, psycopg.Error)
        if its_own and not self._is_substitute(settlement):
            new = self._late.add(self._substitute(settlement, error))
        else:
            new = self._late.add(settlement)  # its day's leaf may be missing: later, never dropped
        if new:
            logger.error(
                "a result cannot be written",
                extra={"job": str(settlement.held.job_id), "error": str(error).strip()},
            )

    def _substitute(self, settlement: Settlement, error: Exception) -> Settlement:
        """A body that ran stays completed, without its result; a failure keeps the error of writing it."""
        if isinstance(settlement.result, Completed):
            return settlement._replace(result=Completed(None, "the result could not be written"))
        text = describe_exception(error, conf().error_bytes)
        return settlement._replace(result=Failed(text, conf().backoff_base))

    def _is_substitute(self, settlement: Settlement) -> bool:
        result = settlement.result
        return isinstance(result, Completed) and result.note is not None

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
