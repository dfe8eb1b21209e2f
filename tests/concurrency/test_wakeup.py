"""Hints from the database to a worker that waits, or is about to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dispatch.wakeup import Wakeup
from jobs.notify import CHANNEL
from tests.factories import own_connection
from tests.racing import Connection, beside, wait_for_waiter

pytestmark = pytest.mark.concurrency
LONG = 60.0


@pytest.fixture
def listener(connection: Connection) -> Iterator[tuple[Wakeup, Connection]]:
    wakeup = Wakeup()
    with own_connection() as listening:
        wakeup.listen(listening)
        yield wakeup, listening


def test_a_hint_ends_the_wait_and_another_look_follows(
    connection: Connection, listener: tuple[Wakeup, Connection]
) -> None:
    wakeup, listening = listener
    first = beside(lambda: wakeup.wait(listening, LONG))
    connection.execute(f"NOTIFY {CHANNEL}")
    assert first.result(LONG / 2)
    assert beside(lambda: wakeup.wait(listening, LONG)).result(LONG / 2)


def test_a_hint_that_comes_during_a_statement_ends_the_next_wait(
    connection: Connection, listener: tuple[Wakeup, Connection]
) -> None:
    wakeup, listening = listener
    connection.execute("SELECT pg_advisory_lock(1)")
    statement = beside(lambda: listening.execute("SELECT pg_advisory_lock_shared(1)"))
    wait_for_waiter(connection)
    connection.execute(f"NOTIFY {CHANNEL}")
    connection.execute("SELECT pg_advisory_unlock(1)")
    statement.result(LONG)
    assert beside(lambda: wakeup.wait(listening, LONG)).result(LONG / 2)


def test_a_call_from_another_thread_ends_the_wait(listener: tuple[Wakeup, Connection]) -> None:
    wakeup, listening = listener
    waiting = beside(lambda: wakeup.wait(listening, LONG))
    wakeup.set()
    assert not waiting.result(LONG / 2), "no look is due"
