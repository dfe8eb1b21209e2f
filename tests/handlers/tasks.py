"""Handlers of the tests: a sibling app. Those named `test.*` are known to every worker that a test starts."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import multiprocessing
import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import IntegrityError, connection, transaction
from django.utils import timezone, translation

from jobs.context import Context
from jobs.errors import Fail, Retry, Snooze
from jobs.registry import job_type
from jobs.retry import Backoff

SOON = Backoff.constant(timedelta(milliseconds=50))


def note(ledger: str, context: Context, event: str) -> None:
    """One line to the run ledger, by one O_APPEND write: what ran is judged from here, never from the tables."""
    line = f"{context.job_id} {context.attempt} {event} {os.getpid()} {time.time():.6f}\n"
    descriptor = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


@job_type("test.noop")
def noop(context: Context, **payload: Any) -> None:
    """Does nothing."""


@job_type("test.echo", searchable=["value", "order.id", "order.paid"])
def echo(context: Context, value: Any = None) -> Any:
    return value


@job_type("test.collector")
def collector(context: Context) -> dict[str, int]:
    """What the garbage collector passes over, and how much may be new before it begins."""
    return {"frozen": gc.get_freeze_count(), "new": gc.get_threshold()[0]}


@job_type("test.ledger", backoff=SOON)
def ledger(context: Context, ledger: str, seconds: float = 0.0) -> None:
    note(ledger, context, "start")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.01)
    note(ledger, context, "end")


@job_type("test.three", concurrency=3, backoff=SOON)
def three(context: Context, ledger: str, seconds: float = 0.0) -> None:
    """Three at once with one concurrency key."""
    note(ledger, context, "start")
    time.sleep(seconds)
    note(ledger, context, "end")


@job_type("test.polite", backoff=SOON)
def polite(context: Context, ledger: str, seconds: float = 60.0) -> None:
    """Asks whether it should go on."""
    note(ledger, context, "start")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        context.heartbeat()
        time.sleep(0.01)
    note(ledger, context, "end")


@job_type("test.flaky", backoff=SOON)
def flaky(context: Context, failures: int = 1, ledger: str = "") -> int:
    if ledger:
        note(ledger, context, "start")
    if context.attempt <= failures:
        raise RuntimeError(f"failure {context.attempt}")
    return context.attempt


@job_type("test.raises", max_attempts=1)
def raises(context: Context, kind: str = "ValueError", message: str = "no") -> None:
    if kind == "SystemExit":
        raise SystemExit(message)
    raise {"ValueError": ValueError, "Fail": Fail, "Retry": Retry, "KeyboardInterrupt": KeyboardInterrupt}[
        kind
    ](message)


@job_type("test.snooze")
def snooze(context: Context, until: str, ledger: str) -> None:
    """Snoozes until a file exists."""
    note(ledger, context, "start")
    if not Path(until).exists():
        raise Snooze(timedelta(milliseconds=100))
    note(ledger, context, "end")


@job_type("test.poison", backoff=SOON)
def poison(context: Context, ledger: str) -> None:
    note(ledger, context, "start")
    os.kill(os.getpid(), signal.SIGKILL)


@job_type("test.exit", max_attempts=1)
def exit_process(context: Context, ledger: str) -> None:
    note(ledger, context, "start")
    os._exit(3)


@job_type("test.late", timeout=timedelta(seconds=0.5), backoff=SOON)
def late(context: Context, ledger: str, seconds: float = 60.0) -> None:
    """Ignores its timeout."""
    note(ledger, context, "start")
    time.sleep(seconds)
    note(ledger, context, "end")


@job_type("test.async")
async def asynchronous(context: Context, ledger: str, seconds: float = 0.0) -> str:
    note(ledger, context, "start")
    await asyncio.sleep(seconds)
    note(ledger, context, "end")
    return "done"


@job_type("test.atomic", atomic=True, timeout=timedelta(seconds=30), backoff=SOON)
def atomic(context: Context, slug: str, fail: bool = False) -> None:
    """Its write to this database happens exactly once."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO jobs_queue (name) VALUES (%s)", [f"{slug}-{context.job_id}"])
    if fail and context.attempt == 1:
        raise RuntimeError("after the write")


@job_type("test.spoils")
def spoils(context: Context, how: str) -> None:
    """Leaves its database connection in a bad state."""
    with connection.cursor() as cursor:
        if how == "closed":
            connection.connection.close()
        elif how == "transaction":
            connection.set_autocommit(False)
            cursor.execute("SELECT 1")
        elif how == "settings":
            cursor.execute("SET statement_timeout = 1; SET search_path = nowhere")
        elif how == "aborted":
            connection.set_autocommit(False)
            cursor.execute("SELECT 1/0")
        elif how == "begin":
            cursor.execute("BEGIN")
        elif how == "caught":
            with suppress(IntegrityError), transaction.atomic():
                cursor.execute("INSERT INTO jobs_tenant (slug, weight) VALUES ('spoiled', 0)")
        elif how == "session":
            cursor.execute("LISTEN spoiled; SELECT pg_advisory_lock(42); CREATE TEMP TABLE spoiled ()")
        elif how == "killed":
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        elif how == "zone":
            timezone.activate("Asia/Tokyo")
            translation.activate("de")


@job_type("test.queries")
def queries(context: Context) -> int:
    """Needs a sane connection."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('search_path'), current_setting('statement_timeout'), "
            "(SELECT count(*) FROM pg_listening_channels()), to_regclass('spoiled') IS NULL, "
            "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())"
        )
        assert cursor.fetchone() == ('"$user", public', "0", 0, True, 0)
        assert connection.get_autocommit()
        assert timezone.get_current_timezone_name() == "UTC"
        assert translation.get_language() == "en"
        cursor.execute("SELECT count(*) FROM jobs_tenant")
        return int(cursor.fetchone()[0])


@dataclass
class Letter:
    to: str
    number: UUID
    lines: list[str]


@job_type("test.letter")
def letter(context: Context, letter: Letter) -> dict[str, Any]:
    return {"to": letter.to, "number": str(letter.number), "lines": len(letter.lines)}


@job_type("test.waits", backoff=SOON)
def waits(context: Context, ledger: str, until: str) -> None:
    """Runs until a file exists, whatever it is asked."""
    note(ledger, context, "start")
    while not Path(until).exists():
        time.sleep(0.01)
    note(ledger, context, "end")


@job_type("test.prompt", timeout=timedelta(seconds=0.3), max_attempts=1)
def prompt(context: Context) -> None:
    """Obeys its timeout."""
    while True:
        context.heartbeat()
        time.sleep(0.01)


@job_type("test.surrogate")
def surrogate(context: Context) -> str:
    """Its result cannot be stored."""
    return "\ud835"


@job_type("test.greedy", backoff=SOON)
def greedy(context: Context, ledger: str, seconds: float) -> None:
    """Holds the interpreter's lock all the time, as a long call into C does."""
    note(ledger, context, "start")
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
    note(ledger, context, "end")


@job_type("test.aspoils", max_attempts=1)
async def aspoils(context: Context, how: str) -> str:
    """An async body that harms what it may share with others."""
    if how == "exit":
        raise SystemExit("async")
    if how == "task":
        asyncio.get_running_loop().create_task(_exit())
    elif how == "stop":
        asyncio.get_running_loop().stop()
    elif how == "cancels":
        for task in asyncio.all_tasks():
            task.cancel()
    else:
        await sync_to_async(spoils)(context, how)
    await asyncio.sleep(0.1)
    return how


async def _exit() -> None:
    raise SystemExit("from a task")


@job_type("test.aqueries", max_attempts=1)
async def aqueries(context: Context) -> int:
    count: int = await sync_to_async(queries)(context)
    return count


@job_type("test.leaks")
def leaks(context: Context, count: int, until: str) -> None:
    """Leaves threads behind that keep connections open until a file exists."""

    def keep() -> None:
        connection.ensure_connection()
        while not Path(until).exists():
            time.sleep(0.05)
        connection.close()

    for _ in range(count):
        threading.Thread(target=keep, daemon=True).start()


@job_type("test.forks", max_attempts=1)
def forks(context: Context, count: int) -> int:
    """Has its work done by processes that were forked from this one."""
    with multiprocessing.get_context("fork").Pool(count) as pool:
        return sum(pool.map(abs, range(-count, 0)))


@job_type("test.terminates", max_attempts=1)
def terminates(context: Context, count: int) -> list[int | None]:
    """Ends processes that it has only just forked."""
    processes = [
        multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,)) for _ in range(count)
    ]
    for process in processes:
        process.start()
        process.terminate()
    for process in processes:
        process.join(10)
        process.kill()
    return [process.exitcode for process in processes]


@job_type("test.verbose", max_attempts=1)
def verbose(context: Context, size: int, frames: int) -> None:
    """Fails with a long message from far down."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    _descend(size, frames)


def _descend(size: int, frames: int) -> None:
    if frames:
        _descend(size, frames - 1)
    raise ValueError("x" * size)


@job_type("test.harms", backoff=SOON)
def harms(context: Context, how: str) -> int:
    """Harms its process, at the first attempt."""
    if context.attempt > 1:
        return context.attempt
    if how == "clocks":
        stopped: Any = {"monotonic": lambda: 0.0, "time": lambda: 0.0, "sleep": lambda seconds: None}
        stopped |= {"monotonic_ns": lambda: 0, "time_ns": lambda: 0, "perf_counter": lambda: 0.0}
        stopped["clock_gettime"] = lambda clock: 0.0
        for name, stand_in in stopped.items():
            setattr(time, name, stand_in)
    elif how == "settler":
        setattr(import_module("dispatch.settler"), "settle", _exit_now)  # noqa: B010
    elif how == "files":
        os.closerange(3, 256)
    return context.attempt


def _exit_now(*args: Any) -> None:
    raise SystemExit
