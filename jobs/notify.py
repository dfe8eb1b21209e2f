"""The optional hint that wakes idle workers: poll is the truth.

NOTIFY serialises commits, so at most one a process in 50 ms, in a transaction of its own after the caller's commit.
A hint left out for that reason is not lost: who was woken looks a second time 60 ms later.
"""

from __future__ import annotations

import threading

from django.db import DatabaseError, connections, transaction

from jobs.db import tells_commits
from jobs.steady import time

CHANNEL = "jobs_queued"
INTERVAL = 0.05
"""Seconds in which one process sends at most one hint."""
SECOND_LOOK = 0.06
"""Seconds after which a listener that was woken looks again."""


class _Hints:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: dict[str, float] = {}

    def due(self, using: str) -> bool:
        now = time.monotonic()
        with self._lock:
            if now - self._sent.get(using, -1.0) < INTERVAL:
                return False
            self._sent[using] = now
            return True


_hints = _Hints()


def due(using: str) -> bool:
    """Whether a hint may be sent now; who asks and hears so, sends it."""
    return _hints.due(using)


def after_commit(using: str) -> None:
    """Send the hint when the caller's transaction commits (at once in autocommit)."""
    if tells_commits(using):
        transaction.on_commit(lambda: _send(using), using=using, robust=True)


def _send(using: str) -> None:
    if not due(using):
        return
    try:
        with connections[using].cursor() as cursor:
            cursor.execute(f"NOTIFY {CHANNEL}")
    except DatabaseError:  # the job is committed; its worker finds it at the next poll
        return
