"""Counts: from which claim on to count what runs under a limit."""

from __future__ import annotations

from jobs.steady import time

RELAYS, RELAYED_SECONDS = 64, 5.0
"""So many relays, and for so long, count from the oldest lease that a claim has told: behind it lie the dead entries of
all that have ended since."""


class Count:
    """Of one limit: the oldest lease seen alive."""

    __slots__ = ("_relays", "_told_at", "learnt", "oldest")

    def __init__(self, look: int) -> None:
        self.learnt, self.oldest = look, 0
        self._relays, self._told_at = RELAYS, float("-inf")

    def told(self, oldest: int, proven: int) -> None:
        """Who has only just become limited may have unlocked claims in flight: from the start until those have ended."""
        self.oldest = oldest if self.learnt < proven else 0
        self._relays, self._told_at = 0, time.monotonic()

    def relayed(self) -> None:
        self._relays += 1

    @property
    def fresh(self) -> bool:
        """A relay may count from it. Only a claim may say anew which is the oldest: under the tenant's lock no other
        claim has a number that it has not shown yet."""
        return self._relays < RELAYS and time.monotonic() < self._told_at + RELAYED_SECONDS


class Counts:
    """Of one claimer's limited tenants, and of its queue. A tenant's is one for all its limits: a limit in one queue
    is counted among what the tenant runs in all of them."""

    def __init__(self) -> None:
        self.of: dict[int, Count] = {}
        self.queue: Count | None = None

    def oldest(self, tenant_id: int) -> int:
        count = self.of.get(tenant_id)
        return count.oldest if count else 0
