"""The shell of the loops: no error ends it."""

from __future__ import annotations

import threading
from datetime import datetime

import psycopg
import pytest

from dispatch.loop import Loop
from tests.racing import Connection
from tests.waiting import wait_until

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]


class Faulty:
    """A pass that raises these, one after another, and then works."""

    name, period, batch = "faulty", 0.01, 100

    def __init__(self, errors: list[BaseException]) -> None:
        self.errors, self.interruptions, self.passes = errors, 0, 0

    def run_once(self, connection: Connection, now: datetime) -> int:
        if self.errors:
            raise self.errors.pop(0)
        self.passes += 1
        return 0

    def interrupted(self) -> None:
        self.interruptions += 1


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("a bug"),
        KeyError("tenant"),
        psycopg.OperationalError("the server closed the connection"),
        psycopg.errors.UndefinedTable("jobs_timer"),
        psycopg.errors.DiskFull("no space left on device"),
        psycopg.errors.ReadOnlySqlTransaction("cannot execute UPDATE"),
        SystemExit("a library that thinks it owns the process"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_bx_03_whatever_a_pass_raises_the_loop_goes_on_with_a_new_session(error: BaseException) -> None:
    work, stop = Faulty([error]), threading.Event()
    loop = Loop(work)
    thread = threading.Thread(target=loop.run, args=(stop,), daemon=True)
    thread.start()
    wait_until(lambda: work.passes > 1)
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
    assert (work.interruptions, loop.failing) == (1, False)


def test_bx_03_nor_does_what_fails_after_a_failure_end_it() -> None:
    class Worse(Faulty):
        def interrupted(self) -> None:
            super().interrupted()
            raise RuntimeError("again")

    work, stop = Worse([RuntimeError("a bug")]), threading.Event()
    thread = threading.Thread(target=Loop(work).run, args=(stop,), daemon=True)
    thread.start()
    wait_until(lambda: work.passes > 1)
    stop.set()
    thread.join(60)
    assert work.interruptions == 1


def test_bx_03_a_deadlock_is_tried_again_at_once() -> None:
    work = Faulty([psycopg.errors.DeadlockDetected(), psycopg.errors.SerializationFailure()])
    loop = Loop(work)
    assert loop.run_pass() == 0
    assert (work.passes, work.interruptions) == (1, 0)
    loop._close()
