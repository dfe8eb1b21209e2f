"""One claim → one result. Knows handlers and what they may raise; knows no table."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Coroutine, Generator
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from datetime import timedelta
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.db import connections

from jobs import payload as payloads
from jobs.conf import conf
from jobs.context import Context
from jobs.errors import Cancelled, Control, Fail, InvalidPayload, Retry, Snooze
from jobs.registry import JobType
from jobs.results import DONE, Completed, Failed, Result, Snoozed
from jobs.results import Cancelled as CancelledResult
from jobs.steady import time
from jobs.text import class_name, describe_exception

logger = logging.getLogger(__name__)


class _Raised:
    """What a body has raised that would end the event loop with it."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class _OwnThread(ThreadSensitiveContext):
    """For the synchronous parts of one async body, its queries above all: a thread of its own, and so connections of its
    own. In the one thread that asgiref has otherwise, what one body does to its connection reaches all others."""

    async def __aexit__(self, *error: Any) -> None:
        executor = SyncToAsync.context_to_thread_executor.pop(self, None)
        await super().__aexit__(*error)  # type: ignore[no-untyped-call]
        if executor is not None:
            executor.submit(connections.close_all)
            executor.shutdown(wait=False)  # ends behind what a cancelled body has left there


class _Running:
    """An async body on its loop. It has ended when its task has: one that was cancelled may take its time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, body: Coroutine[Any, Any, Any]) -> None:
        self.ended: Future[Any] = Future()
        self._loop, self._body = loop, body
        loop.call_soon_threadsafe(self._begin)

    def cancel(self) -> None:
        """From any thread."""
        self._loop.call_soon_threadsafe(lambda: self._task.cancel())

    def _begin(self) -> None:
        self._task = self._loop.create_task(_contained(self._body))
        self._task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._body.close()  # of one that was cancelled before it began
        if task.cancelled():
            self.ended.set_exception(CancelledError())
        elif (error := task.exception()) is not None:
            self.ended.set_exception(error)
        else:
            self.ended.set_result(task.result())


class AsyncLoop:
    """One event loop in a thread of its own, for all async handlers of a process; started on first use."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def submit(self, body: Coroutine[Any, Any, Any]) -> _Running:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._loop.time = time.monotonic  # type: ignore[method-assign]
                threading.Thread(target=self._run, args=(self._loop,), name="asyncio", daemon=True).start()
        return _Running(self._loop, body)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        """For ever: a body that stops the loop, or a task of its that raises SystemExit, stops it for all."""
        while True:
            try:
                loop.run_forever()
            except BaseException:
                logger.exception("an async task raised what ends a process")


async def _contained(body: Coroutine[Any, Any, Any]) -> Any:
    process = os.getpid()
    async with _OwnThread():
        try:
            value = await body
        except BaseException as error:
            _end_a_fork(process, error)
            if isinstance(error, (SystemExit, KeyboardInterrupt)):
                return _Raised(error)
            raise
        _end_a_fork(process)
        return value


def call(job_type: JobType, context: Context, payload: str, loop: AsyncLoop, hard: float | None) -> Any:
    """Run the body on its payload (JSON text) and return what it returned. `hard`: seconds after which an async body is cancelled."""
    if job_type.payload_type is not None:
        arguments: dict[str, Any] = {}
        positional = [payloads.load(payloads.decode(payload), job_type.payload_type)]
    else:
        arguments, positional = payloads.decode(payload), []
    process = os.getpid()
    try:
        value = job_type.handler(context, *positional, **arguments)
    except BaseException as error:
        _end_a_fork(process, error)
        raise
    _end_a_fork(process)
    if not job_type.is_async:
        return _ran(value)
    running = loop.submit(value)
    try:
        value = running.ended.result(hard)
    except TimeoutError:
        if running.ended.done():
            raise  # the body's own
        running.cancel()
        wait([running.ended])  # one that does not end blocks the loop, or would run beside its next attempt
        raise TimeoutError(f"cancelled after {hard:g} s, its hard timeout") from None
    if isinstance(value, _Raised):
        raise value.error
    return _ran(value)


def _end_a_fork(parent: int, error: BaseException | None = None) -> None:
    """A process that a body has forked ends where the body does, as `sys.exit()` asks. What comes behind is its parent's:
    the transaction, the session that both hold, the job's result."""
    if os.getpid() == parent:
        return
    status = int(error is not None)
    if isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    elif error is not None:
        logger.error("a process that a body has forked ends by an error", exc_info=error)
    with suppress(Exception):
        sys.stdout.flush()
    os._exit(status)


def _ran(value: Any) -> Any:
    """What a body returned, unless that says how the attempt ended, or is a body which still waits to be run: its job
    would be said to have completed and nothing would have been done."""
    if isinstance(value, Control):
        raise value
    if value is not None and isinstance(value, Awaitable | Generator | AsyncGenerator):
        if isinstance(value, Coroutine | Generator):
            value.close()
        raise TypeError(
            f"the handler returned a {type(value).__name__} that nobody has run; say `async def`, and do not wrap it "
            "in a function that is not async"
        )
    return value


def execute(
    job_type: JobType, context: Context, payload: str, loop: AsyncLoop, hard: float | None = None
) -> Result:
    """Run the body to a result. Never raises: SystemExit and the like are failures of the job, not of the worker."""
    try:
        value = call(job_type, context, payload, loop, hard)
    except BaseException as error:
        return result_of_error(error, job_type, context)
    return completed(value)


def completed(value: Any) -> Completed:
    """A result that cannot be stored never fails a body that ran: it is left out, with a note."""
    if value is None:
        return DONE
    try:
        return Completed(payloads.encode(value, limit=conf().result_bytes, field="result"))
    except InvalidPayload as error:
        return Completed(None, f"the result was not stored: {error}"[:500])
    except Exception as error:  # of its own repr(), or of a thread that still changes it
        return Completed(None, f"the result was not stored: {class_name(error)}")


def result_of_error(error: BaseException, job_type: JobType, context: Context) -> Result:
    if isinstance(error, Snooze):
        return Snoozed(max(error.delay, timedelta()))
    if isinstance(error, Cancelled) and context.cancelled:
        return CancelledResult()
    after = job_type.backoff.delay(context.attempt)
    if isinstance(error, Retry) and error.after is not None:
        after = max(error.after, timedelta())
    return Failed(describe_exception(error, conf().error_bytes), after, final=isinstance(error, Fail))
