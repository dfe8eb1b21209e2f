"""Door: whether a queue lets anybody in. It shuts while the whole queue is held, out of tokens or at its limit. All of it
is memory: it saves claims in vain, and is forgotten after LONGEST_WAIT at the latest."""

from __future__ import annotations

from jobs.leases.passed import FREE_SECONDS, LONGEST_WAIT, wait_after
from jobs.steady import time

OPEN = float("-inf")


class Door:
    """Not thread-safe but for `settled`."""

    def __init__(self) -> None:
        self._closed_until = self._full_until = OPEN
        """It is held, or out of tokens; it is at its limit: the monotonic time of the next try."""
        self._vain = 0
        """Tries in a row that found it at its limit."""
        self._ended = self._asked = 0
        """Jobs of ours that have ended, now and at the last try."""

    @property
    def shut_for(self) -> float | None:
        """Seconds until it is worth another try; None: it is now."""
        now = time.monotonic()
        until = self._closed_until if now < self._closed_until else self._full_until
        return until - now if now < until else None

    def ask(self) -> None:
        """A claim is about to be sent."""
        self._asked = self._ended

    def close(self, wait: float) -> None:
        """Held, or out of tokens, for about so many seconds."""
        self._closed_until = time.monotonic() + max(FREE_SECONDS, min(wait, LONGEST_WAIT))

    def full(self) -> None:
        """At its limit, by the claim that was sent."""
        self._vain += 1
        self._full_until = time.monotonic() + wait_after(self._vain)
        if self._ended != self._asked:  # meanwhile, perhaps after the count
            self._full_until = OPEN

    def open(self) -> None:
        """There was room."""
        self._vain = 0

    def settled(self) -> None:
        """One of our jobs has ended. From any thread."""
        self._ended += 1
        self._full_until = OPEN
