"""Sleep until something happens: a NOTIFY on the connection, a call of `set()` from another thread, or the time."""

from __future__ import annotations

import os
import selectors
from typing import Any

import psycopg

from jobs.notify import CHANNEL, SECOND_LOOK
from jobs.steady import time

Connection = psycopg.Connection[Any]


class Wakeup:
    """One waiter. Polling is the safety net: a lost hint costs at most the time the caller was willing to sleep."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._second_look = 0.0

    def listen(self, connection: Connection) -> None:
        """Take hints from this connection, which must be a session of its own (not behind a transaction pooler)."""
        # For hints that arrive during a statement; without a handler psycopg would keep them all, unread.
        connection.add_notify_handler(self._hinted)
        connection.execute(f"LISTEN {CHANNEL}")

    def set(self) -> None:
        """Wake the waiter; from any thread, any number of times."""
        try:
            os.write(self._write, b"x")
        except BlockingIOError:  # the pipe is full of earlier calls: it is awake
            return

    def wait(self, connection: Connection | None, timeout: float) -> bool:
        """Return after `timeout` seconds at the latest; True when a look at the queues is due. After a hint the next
        wait is short: senders leave out hints that follow within 50 ms, so who was woken looks a second time."""
        second = self._second_look
        if second:
            timeout = min(timeout, max(0.0, second - time.monotonic()))
        with selectors.DefaultSelector() as selector:
            selector.register(self._read, selectors.EVENT_READ)
            if connection is not None and not connection.closed:
                selector.register(connection.fileno(), selectors.EVENT_READ, connection)
            rest = timeout % 0.001 if timeout > 0 else 0.0  # epoll rounds up to the next millisecond
            events = selector.select(max(0.0, timeout - rest))
            for key, _ in events:
                if key.data is None:
                    self._drain()
                else:
                    self._read_hints(key.data)
            if not events:
                time.sleep(rest)
        if second and time.monotonic() >= second and self._second_look == second:
            self._second_look = 0.0
            return True
        return self._second_look != second

    def _drain(self) -> None:
        try:
            while os.read(self._read, 4096):
                pass
        except BlockingIOError:
            return

    def _read_hints(self, connection: Connection) -> None:
        connection.pgconn.consume_input()  # raises when the server has closed the session
        while hint := connection.pgconn.notifies():
            self._hinted(hint)

    def _hinted(self, hint: object) -> None:
        self._second_look = time.monotonic() + SECOND_LOOK
