"""Two sessions in one moment: threads with connections of their own, and who waits for whom."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, LiteralString, TypeVar

import psycopg
from django.db import connections

from jobs.invariant import check
from jobs.models import Job
from tests.factories import own_connection, schedule
from tests.waiting import wait_until

_WAITERS: LiteralString = """
    WITH RECURSIVE waiting(pid) AS (
        SELECT %s::int
        UNION
        SELECT a.pid FROM waiting JOIN pg_stat_activity a
            ON a.wait_event_type = 'Lock' AND waiting.pid = ANY(pg_blocking_pids(a.pid))
    )
    SELECT count(*) - 1 >= %s FROM waiting
"""

T = TypeVar("T")
Connection = psycopg.Connection[Any]


def beside(act: Callable[[], T]) -> Future[T]:
    """Run this in a thread, whose Django connections end with it."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(act())
        except BaseException as error:
            future.set_exception(error)
        finally:
            connections.close_all()

    threading.Thread(target=run, daemon=True).start()
    return future


def beside_on_own(act: Callable[[Connection], T]) -> Future[T]:
    """Run this in a thread, with a connection of its own."""

    def run() -> T:
        with own_connection() as connection:
            return act(connection)

    return beside(run)


def at_once(acts: Sequence[Callable[[Connection], T]], timeout: float = 60.0) -> list[T]:
    """Run these on connections of their own that are open before the first begins; their answers, in order."""
    barrier = threading.Barrier(len(acts))

    def begin(act: Callable[[Connection], T]) -> Callable[[Connection], T]:
        def run(connection: Connection) -> T:
            barrier.wait(timeout)
            return act(connection)

        return run

    return [future.result(timeout) for future in [beside_on_own(begin(act)) for act in acts]]


def pid_of_django() -> int:
    """The server process of this thread's Django connection."""
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def wait_for_waiter(holder: Connection | int, count: int = 1, who: Future[Any] | None = None) -> None:
    """Return when so many sessions wait for `holder`, or behind one that does. AssertionError when `who` has ended
    without."""
    pid = holder if isinstance(holder, int) else holder.info.backend_pid
    with own_connection() as watch:

        def waits() -> bool:
            found = watch.execute(_WAITERS, [pid, count]).fetchone() == (True,)
            assert found or who is None or not who.done(), "it did not wait"
            return found

        wait_until(waits, what=f"{count} that wait")


def is_free(table: str, key: str, value: Any) -> bool:
    """Nobody has locked this row."""
    with own_connection() as watch:
        statement: Any = f"SELECT FROM {table} WHERE {key} = %s FOR UPDATE SKIP LOCKED"
        return watch.execute(statement, [value]).fetchone() is not None


def due_job(job_type: str = "test.noop", payload: Any = None, **options: Any) -> Job:
    """A job that may be claimed in the very next statement: `now` is rounded up, to the next millisecond."""
    return schedule(job_type, payload, delay=-timedelta(seconds=1), **options)


def assert_sound() -> None:
    """Every job is in exactly one place."""
    assert check("default", span=timedelta(days=1)).breaches == []
