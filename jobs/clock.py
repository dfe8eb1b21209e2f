"""The database's clock, estimated between replies: the one clock of the project.

`now()` is the timestamp of the last reply plus the boot-time elapsed since that reply arrived. The reply is older
than its arrival, so the estimate never runs ahead of the database: nothing that trusts it is early. Boot time, not
monotonic time: on Linux the latter stands still while the host is suspended.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connections

from jobs.steady import time

SLOWEST = 0.1
"""Seconds by which a reply may be slower than the fastest one; more is a clock that was set back."""
REFRESH = 30.0
"""Seconds after which an estimate is measured anew: host clocks drift by some 10 ms an hour."""
PROMPT, TRIES = 0.02, 3
"""A reply that took more seconds than these is asked for again, so many times in all: by what it was late the estimate
would lag until the next measurement."""


def boottime() -> float:
    """Seconds since boot, suspend included."""
    return time.clock_gettime(time.BOOT)


class DatabaseClock:
    """One per connection or database; thread-safe by replacing one tuple."""

    def __init__(self) -> None:
        self._mark: tuple[datetime, float] | None = None
        self._observed = 0.0

    def observe(self, timestamp: datetime) -> None:
        """Take over a timestamp (clock_timestamp()) that the database has just sent. Of the replies of one second the
        fastest counts: a slow one says less. One that is behind by more than that would be a clock that was set back."""
        timestamp, arrived = timestamp.astimezone(UTC), boottime()
        if self._mark is not None and arrived - self._observed < 1.0:
            ahead = (self.at(arrived) - timestamp).total_seconds()
            if 0 <= ahead < SLOWEST:
                return
        self._mark, self._observed = (timestamp, arrived), arrived

    def stale(self) -> bool:
        return self._mark is None or boottime() - self._mark[1] > REFRESH

    def now(self) -> datetime:
        return self.at(boottime())

    def at(self, moment: float) -> datetime:
        """The database's time at a boot time of this host."""
        if self._mark is None:
            raise RuntimeError("the clock was read before the database was asked")
        timestamp, arrived = self._mark
        return timestamp + timedelta(seconds=max(0.0, moment - arrived))

    def read(self, connection: Any) -> datetime:
        """Ask the database over a psycopg connection and return its time."""
        (timestamp,) = connection.execute("SELECT clock_timestamp()", prepare=True).fetchone()
        self.observe(timestamp)
        return self.now()


_clocks: dict[str, DatabaseClock] = {}
_lock = threading.Lock()


def now(using: str = "default") -> datetime:
    """The database's time for code on Django's connection; asked for at most every 30 seconds a process."""
    with _lock:
        clock = _clocks.setdefault(using, DatabaseClock())
    if clock.stale():
        with connections[using].cursor() as cursor:
            for _ in range(TRIES):
                begun = boottime()
                cursor.execute("SELECT clock_timestamp()")
                clock.observe(cursor.fetchone()[0])
                if boottime() - begun < PROMPT:
                    break
    return clock.now()


def asked(using: str = "default") -> datetime:
    """The database's time, asked now: for what is compared with times that the database has written a moment ago."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        timestamp: datetime = cursor.fetchone()[0]
        return timestamp
