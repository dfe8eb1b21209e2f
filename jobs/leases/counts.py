"""Counts: from which claim on to count what runs under a limit."""

from __future__ import annotations


class Count:
    """Of one limit: the oldest lease seen alive."""

    __slots__ = ("learnt", "oldest")

    def __init__(self, look: int) -> None:
        self.learnt, self.oldest = look, 0

    def told(self, oldest: int, proven: int) -> None:
        """Who has only just become limited may have unlocked claims in flight: from the start until those have ended."""
        self.oldest = oldest if self.learnt < proven else 0


class Counts:
    """Of one claimer's limited tenants, and of its queue. A tenant's is one for all its limits: a limit in one queue
    is counted among what the tenant runs in all of them."""

    def __init__(self) -> None:
        self.of: dict[int, Count] = {}
        self.queue: Count | None = None

    def oldest(self, tenant_id: int) -> int:
        count = self.of.get(tenant_id)
        return count.oldest if count else 0
