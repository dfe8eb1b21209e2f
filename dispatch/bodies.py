"""The threads that run handlers, one body each at a time."""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context
from datetime import timedelta

from dispatch.atomic import execute_atomic
from dispatch.executor import AsyncLoop, execute
from dispatch.holdings import Holding, Holdings, Stop
from dispatch.hygiene import CleanConnections, close_connections
from dispatch.pace import Pace
from dispatch.slots import NEVER
from jobs.clock import DatabaseClock, boottime
from jobs.conf import conf
from jobs.registry import JobType, registry
from jobs.results import Cancelled, Failed, Released, Result, Settlement
from jobs.text import ErrorText, describe_exception

logger = logging.getLogger(__name__)

IDLE_SECONDS = 5.0


class Bodies:
    def __init__(
        self,
        threads: int,
        holdings: Holdings,
        clock: DatabaseClock,
        using: str,
        settle: Callable[[Settlement], None],
        wake: Callable[[], None],
    ) -> None:
        self.holdings, self.clock, self.using = holdings, clock, using
        self._settle, self._wake = settle, wake
        self._loop = AsyncLoop()
        self._ready: queue.SimpleQueue[bool] = queue.SimpleQueue()
        """For each holding in a lane, True; False for each thread that is to end."""
        self._lanes: tuple[deque[Holding], deque[Holding]] = (deque(), deque())
        """What waits for a thread, and behind it what tenants have over their share."""
        self._busy = 0
        self._lock = threading.Lock()
        self.pace = Pace()
        self._threads = [
            threading.Thread(target=self._run, name=f"body-{n}", daemon=True) for n in range(threads)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        return all(thread.is_alive() for thread in self._threads)

    def put(self, holding: Holding) -> None:
        self._lanes[holding.loud].append(holding)
        self._ready.put(True)

    @property
    def free(self) -> int:
        """Threads with nothing to do and nothing waiting for them; negative when claims wait."""
        return len(self._threads) - self._busy - self.holdings.waiting

    def finish(self) -> None:
        """End each thread when its present body has ended."""
        for _ in self._threads:
            self._ready.put(False)

    def wait(self, seconds: float) -> bool:
        """Wait for the threads to end, for about so long; True when they have."""
        for thread in self._threads:
            thread.join(seconds / len(self._threads))
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self) -> None:
        while (holding := self._next()) is not None:
            if not self.holdings.leave_buffer(holding):
                continue  # taken back
            with self._lock:
                self._busy += 1
            try:
                # What a body activates (a time zone, a language, any context variable) ends with it.
                Context().run(self._run_body, holding)
            except BaseException as error:
                logger.exception("a body's thread failed", extra={"job": str(holding.claim.held.job_id)})
                failed = Failed(describe_exception(error, conf().error_bytes), conf().backoff_base)
                self._settle(Settlement(holding.claim.held, failed, holding.started_at))
            finally:
                with self._lock:
                    self._busy -= 1
                if self._ready.empty():
                    self._wake()

    def _next(self) -> Holding | None:
        """Wait for a claim; None: end."""
        try:
            ready = self._ready.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            close_connections()
            ready = self._ready.get()
        if not ready:
            return None
        try:
            return self._lanes[0].popleft()
        except IndexError:
            return self._lanes[1].popleft()

    def _run_body(self, holding: Holding) -> None:
        claim, context = holding.claim, holding.context
        job_type = registry.get(claim.held.job_type)
        if job_type is None:  # a claim asks for known types only
            self._settle(Settlement(claim.held, Released(), None))
            return
        begun = boottime()
        if self.holdings.slots.lease_left(begun) < 0:
            # We were frozen, or cut off: it is another's by now, or will be. Nobody who is under a limit runs in vain.
            self._settle(Settlement(claim.held, Released(), None))
            return
        hard = self._set_deadlines(holding, job_type, begun)
        holding.started_at = self.clock.at(begun)
        with CleanConnections():
            if job_type.atomic:
                result = execute_atomic(job_type, context, claim, holding.started_at, self.using, self._loop)
            else:
                result = execute(
                    job_type,
                    context,
                    claim.payload or "{}",
                    self._loop,
                    None if hard == NEVER else hard - begun,
                )
        if holding.slot is not None:
            self.holdings.slots.end(holding.slot)
        self.pace.note(claim.queue, claim.held.job_type, claim.tenant_id, boottime() - begun)
        if isinstance(result, Cancelled):
            result = _of_stop(holding.reason, job_type.backoff.delay(claim.held.attempt))
        if result is None or holding.reason is Stop.LOST:
            self.holdings.forget(holding)
        else:
            self._settle(Settlement(claim.held, result, holding.started_at))

    def _set_deadlines(self, holding: Holding, job_type: JobType, begun: float) -> float:
        """Note the body in its slot; returns its hard deadline. An async body is cancelled by its loop, and has the grace
        period to end; a thread cannot be, so the supervisor kills the process of one that is late."""
        hard = NEVER
        if job_type.timeout is not None:
            holding.soft_deadline = begun + job_type.timeout.total_seconds()
            hard = holding.soft_deadline + conf().grace.total_seconds()
        guarded = holding.claim.limited or job_type.exclusive
        killed = hard + conf().grace.total_seconds() if job_type.is_async else hard
        holding.slot = self.holdings.slots.start(holding.claim.held.job_id, killed, guarded)
        return hard


def _of_stop(reason: Stop | None, after: timedelta) -> Result:
    """What a body that gave in to a stop has ended with."""
    if reason is Stop.TIMEOUT:
        return Failed(ErrorText("TimeoutError", Stop.TIMEOUT.value, "", "timeout"), after)
    if reason is Stop.LEASE:
        return Released()
    return Cancelled()
