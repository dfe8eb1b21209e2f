"""One worker process: claims what will start soon, hands it to its threads, keeps watch over what they run.

This thread claims and watches; others run bodies; one settles. Connections: one here, one in the settler, and those
that handlers open in their threads.
"""

from __future__ import annotations

import logging
import random
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg

from dispatch.bodies import Bodies
from dispatch.holdings import Holdings
from dispatch.intake import Intake
from dispatch.noise import Noise
from dispatch.relays import Relays
from dispatch.settler import Settler
from dispatch.slots import NEVER, Slots
from dispatch.starts import Starts
from dispatch.turns import Turns
from dispatch.wakeup import Wakeup
from dispatch.watch import Watch
from jobs import db
from jobs.clock import DatabaseClock, boottime
from jobs.conf import conf
from jobs.errors import SchedulerError
from jobs.leases import ProcessExpired, PutBack, Settled, fetch
from jobs.registry import registry
from jobs.results import Claim, Released, Settlement, Snoozed
from jobs.signals import tell_settled

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

CHECK = 1.0
"""Seconds between two looks at what the database says of our claims."""
IDLE_CHECK = 5.0
"""The same while we hold nothing: a claim whose reply was lost is ours without our knowing."""
MISSING_ROW_WAIT = timedelta(minutes=1)
"""A claimed job without its row is looked at again after so long; never a failure of the job."""
RETRY = (0.1, 5.0)
HEAVY = 32 * 2**20
"""Characters of large payloads that a process holds, but for what its threads work on."""


class ThreadEnded(SchedulerError):
    """A thread that this process cannot do without has ended by an error: the process is to be replaced."""


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    process_id: int
    queues: tuple[str, ...]
    threads: int
    using: str = "default"
    listen: bool = True
    """False behind a transaction pooler: polling alone."""
    suspects: bool = False
    """Run only entries that crashed their process twice, one at a time."""
    idle_exit: float = NEVER
    """Seconds without work after which to leave."""


class Worker:
    def __init__(self, settings: WorkerSettings, slots: Slots) -> None:
        self.settings, self.slots = settings, slots
        self.wakeup, self.clock = Wakeup(), DatabaseClock()
        self.name = f"punctual worker {settings.process_id}"
        self.holdings = Holdings(slots)
        self.settler = Settler(settings.using, self.name, self._on_settled, self._on_admitted)
        self.relays = Relays(self.holdings, self.wakeup, self.settler.put)
        ended = self.settler.put if settings.suspects else self.relays.put
        self.bodies = Bodies(
            settings.threads, self.holdings, self.clock, settings.using, ended, self._on_freed
        )
        self.intake = Intake(
            settings.queues, settings.process_id, registry.names(), self.clock, suspects=settings.suspects
        )
        self.starts = Starts(self.clock, self.bodies.put)
        self.turns = Turns()
        self.noise = Noise(settings.threads, self.holdings, self.bodies.pace)
        self.watch = Watch(settings.process_id, self.holdings, self.settler.put)
        self._draining = threading.Event()
        self._connection: Connection | None = None
        self._hungry = True
        """Something may be claimed when a thread or a slot becomes free: wake for it."""
        self._checked = self._worked = boottime()

    def run(self) -> None:
        """Work until told to drain; returns when every body has ended and every result is written."""
        self.bodies.start()
        self.starts.start()
        self.settler.start()
        wait = RETRY[0]
        while not self._leaving():
            if not (self.bodies.alive and self.starts.alive and self.settler.alive):
                raise ThreadEnded  # it would look healthy, keep its leases and do nothing
            try:
                self._turn()
                wait = RETRY[0]
            except ProcessExpired:
                logger.error("lease expired", extra={"worker": self.settings.process_id})
                self._draining.set()
            except psycopg.Error as error:
                logger.warning("database lost", extra={"error": str(error).strip(), "wait": round(wait, 1)})
                self._close()
                self.relays.give_all_back()
                self.slots.beat(boottime())
                self.watch.doubt()
                self.watch.bodies()
                self.wakeup.wait(None, wait * random.uniform(0.5, 1.0))  # noqa: S311
                wait = min(RETRY[1], wait * 2)
        self._drain()

    def drain(self) -> None:
        """Stop claiming; run() returns when what runs has ended. From any thread or a signal handler."""
        self._draining.set()
        self.wakeup.set()

    def _leaving(self) -> bool:
        idle = not len(self.holdings) and boottime() - self._worked > self.settings.idle_exit
        return self._draining.is_set() or self.slots.stopping or idle

    def _turn(self) -> None:
        """Watch, claim, and sleep until there is something to do."""
        connection = self._connect()
        self._relay(connection)
        self._check(connection)
        self._hungry = True  # before the room is judged: who frees some afterwards sees it
        ready = self.turns.of(self.intake.ready(connection), boottime())
        claimed = [self._claim(connection, name, len(ready)) for name in ready]
        if not any(claimed):
            self._hungry = None in claimed or self.intake.waiting
            if ready and all(count is None for count in claimed):
                idle = conf().idle_poll.total_seconds()  # a thread that becomes free wakes us
            else:
                idle = self.intake.idle_for(connection)
            if len(self.holdings):
                idle = min(idle, CHECK)
            if self.wakeup.wait(connection, idle):
                self.intake.forget()

    def _check(self, connection: Connection) -> None:
        now = boottime()
        self.slots.beat(now)
        self.watch.bodies()
        self.watch.buffer()
        if now - self._checked >= (CHECK if len(self.holdings) or self.watch.uncertain else IDLE_CHECK):
            self._checked = now
            self.watch.reconcile(connection)

    def _room(self, queue: str) -> int:
        """How many entries of a queue to claim: what the free threads take, and ahead of them what will start within a
        second and is not too large."""
        if self.settings.suspects and len(self.holdings):
            # One at a time: what has ended but is not settled yet would be blamed for the next one's crash.
            return 0
        most = conf().claim_batch
        ahead = 0 if self.settings.suspects else self.bodies.pace.ahead(queue, self.settings.threads, most)
        if self.holdings.waiting > ahead // 2:
            return 0
        free = self.bodies.free
        fits = max(free, min(free + ahead, self.bodies.pace.fit(queue, HEAVY - self.holdings.weight)))
        return max(0, min(most, fits, self.slots.count - len(self.holdings)))

    def _claim(self, connection: Connection, queue: str, rivals: int) -> int | None:
        """Claim this queue's share of the room among `rivals` that have something due; None when there is no room."""
        size = self._room(queue)
        if size == 0:
            return None
        self.turns.served(queue, boottime())
        self.noise.begin()
        claims, missing = self.intake.claim(
            connection,
            queue,
            max(1, size // rivals),
            max(0, self.bodies.free),
            self.noise,
            max(1, HEAVY - self.holdings.weight),
        )
        if self._put(queue, claims, missing):
            self.clock.read(connection)  # the claim's own reply is too slow to tell the time by
        return len(claims)

    def _put(self, queue: str, claims: list[Claim], missing: list[Claim]) -> bool:
        """Hand them to the threads; True when some have to wait for their time."""
        for each in missing:
            told = {"job": str(each.held.job_id)}
            logger.error("a claimed job has no row, or its day is locked: run checkjobs", extra=told)
            self.settler.put(Settlement(each.held, Snoozed(MISSING_ROW_WAIT), None))
        full, now = self._weigh(queue, claims), self.clock.now()
        held = [
            self.starts.put(self.holdings.add(claim, loud=self.noise.served(claim)), now) for claim in full
        ]
        return any(held)

    def _relay(self, connection: Connection) -> None:
        """Settle what was handed over by bodies that ended while we slept, and start who comes next in their places."""
        while (taken := self.relays.take()) is not None:
            (queue, tenant_id), ended = taken
            try:
                relayed = self.intake.relay(connection, queue, tenant_id, ended)
            except BaseException:
                self.relays.give_back(ended)
                raise
            if relayed is None:
                self.relays.give_back(ended)
                continue
            settled = relayed.settled
            self.relays.give_back(each for each in ended if each.held.job_id not in settled.fates)
            for each in settled.batch:
                if (holding := self.holdings.of(each.held)) is not None:
                    self.holdings.forget(holding)
            self._worked = boottime()
            self.noise.begin()
            room = max(1, HEAVY - self.holdings.weight)
            self._put(queue, *fetch(connection, relayed.claims, room))
            tell_settled(Worker, settled)

    def _weigh(self, queue: str, claims: list[Claim]) -> list[Claim]:
        """Give back what there was no room for; the next claim is as much smaller."""
        full = [claim for claim in claims if claim.payload is not None]
        if full:
            self.bodies.pace.weigh(queue, sum(len(claim.payload or "") for claim in full) / len(full))
        if len(full) < len(claims):
            logger.info("large payloads", extra={"queue": queue, "given_back": len(claims) - len(full)})
            for claim in claims:
                if claim.payload is None:
                    self.settler.put(Settlement(claim.held, Released(), None))
        return full

    def _on_settled(self, settled: Settled) -> None:
        """In the settler's thread, after the commit."""
        self._worked = boottime()
        for settlement in settled.batch:
            if (holding := self.holdings.of(settlement.held)) is not None:
                self.holdings.forget(holding)
                self.intake.settled(holding.claim.queue, holding.claim.tenant_id)
        tell_settled(Worker, settled)
        if any(isinstance(fate, PutBack) for fate in settled.fates.values()):
            self.intake.forget()  # it may be due again long before the next poll
            self.wakeup.set()
        self._on_freed()

    def _on_freed(self) -> None:
        """In the threads of bodies and the settler's."""
        if self._hungry:
            self.wakeup.set()

    def _on_admitted(self) -> None:
        """In the settler's thread: entries that waited for a concurrency key are ready."""
        self.intake.forget()
        self.wakeup.set()

    def _drain(self) -> None:
        """What has not started goes back; what runs may end. The supervisor bounds the time."""
        for holding in self.holdings.buffered():
            self.watch.take_back(holding, Released())
        self.starts.finish()
        self.bodies.finish()
        while not self._ended():
            self.slots.beat(boottime())
            self.watch.bodies()
            try:
                self.watch.reconcile(self._connect())
            except psycopg.Error:
                self._close()
        self.settler.finish()
        self._close()

    def _ended(self) -> bool:
        """Whether all bodies have ended, after a moment."""
        ended = self.bodies.wait(CHECK)
        self.relays.give_all_back()
        return ended

    def _connect(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = db.connect(
                self.settings.using, name=self.name, generic=True, patience=conf().lease.total_seconds()
            )
            self.clock.read(self._connection)
            if self.settings.listen:
                self.wakeup.listen(self._connection)
            self.intake.restart()
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
