"""Nobody waits for ever for a server that has fallen silent.

A firewall that forgot a connection, a pooler or a host that froze: TCP may say nothing for hours, and libpq waits. A
session that is watched is cut when one round trip takes longer than its patience; its owner sees a lost database and
connects anew. The server ends a statement whose client has gone within its `client_connection_check_interval`, and a
transaction that waits for its next statement for longer than `bound_idleness` allows: a worker that vanished between two
statements would hold its locks for hours, and whoever alters a table would wait behind them, and all others behind him.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from django.db.backends.signals import connection_created

from jobs.session import Counted, Session
from jobs.steady import time

logger = logging.getLogger(__name__)

LOOK = 0.5
"""Seconds between two looks. Patience is counted in looks, not by a clock: a process that was frozen for an hour has not
waited for its reply, which is there when it goes on."""


class _Waiting:
    """How many looks have found a session in the same round trip."""

    def __init__(self, patience: float) -> None:
        self.most = patience / LOOK
        self._trip, self._looks = 0, 0

    def look(self, session: Session) -> bool:
        """Whether patience is at an end."""
        trips = session.trips
        self._looks = self._looks + 1 if trips % 2 and trips == self._trip else 0
        self._trip = trips
        return self._looks > self.most


class _Watcher:
    def __init__(self) -> None:
        self._watched: WeakKeyDictionary[Session, _Waiting] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, session: Session, patience: float) -> None:
        with self._lock:
            self._watched[session] = _Waiting(patience)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="patience", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(LOOK)
            with self._lock:
                watched = list(self._watched.items())
            for session, waiting in watched:
                if waiting.look(session):
                    cut(session)


_watcher = _Watcher()


def watch(session: Session, patience: float) -> None:
    """Cut this session when one of its round trips takes longer than `patience` seconds."""
    _watcher.add(session, patience)


def watch_django(patience: float) -> None:
    """From now on watch every connection that Django opens in this process as well: for loops, whose statements are all
    short, never for handlers."""

    def adopt(connection: Any, **kwargs: Any) -> None:
        raw: Any = connection.connection
        if type(raw) in (psycopg.Connection, Counted):
            raw.__class__ = Session  # Django knows no setting for the class of its connections
            session: Any = raw
            watch(session, patience)

    connection_created.connect(adopt, weak=False, dispatch_uid="patience")


def cut(session: Session) -> None:
    """End the connection under whoever waits for its reply; nothing when the reply has just come."""
    trips = session.trips
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(session.fileno())) as line:
        # Still in the same round trip: so it was its socket that was copied, not another's of the same number.
        if trips % 2 and session.trips == trips:
            logger.warning("the database is silent: session cut", extra={"pid": session.info.backend_pid})
            line.shutdown(socket.SHUT_RDWR)
