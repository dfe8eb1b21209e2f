"""How long bodies take, measured by job type and by tenant: what will start within a second may be claimed ahead. And how
large payloads are."""

from __future__ import annotations

from collections import defaultdict

AHEAD_SECONDS = 1.0
"""How much work may wait in a worker's buffer."""
WEIGHT = 0.2
"""Of the newest body in the mean of its type."""
MOST_TENANTS = 10_000


class Pace:
    """Written by body threads, read by the one that claims; a lost update only blurs a mean."""

    def __init__(self) -> None:
        self._means: dict[str, dict[str, float]] = defaultdict(dict)
        self._tenants: dict[int, float] = {}
        self._weights: dict[str, float] = {}

    def note(self, queue: str, job_type: str, tenant_id: int, seconds: float) -> None:
        means = self._means[queue]
        means[job_type] = means.get(job_type, AHEAD_SECONDS) * (1 - WEIGHT) + seconds * WEIGHT
        before = self._tenants.get(tenant_id, AHEAD_SECONDS)
        if len(self._tenants) >= MOST_TENANTS and before == AHEAD_SECONDS:
            self._tenants.clear()  # they are learnt again within a few bodies
        self._tenants[tenant_id] = before * (1 - WEIGHT) + seconds * WEIGHT

    def of_tenant(self, tenant_id: int) -> float:
        """How many seconds a body of this tenant takes."""
        return max(self._tenants.get(tenant_id, AHEAD_SECONDS), 1e-4)

    def ahead(self, queue: str, threads: int, most: int) -> int:
        """How many entries of a queue will start within a second on `threads` threads, up to `most`. By its slowest
        type, as nobody knows which come next; none before any has been measured."""
        slowest = max(list(self._means[queue].values()), default=AHEAD_SECONDS)
        return 0 if slowest >= AHEAD_SECONDS else min(most, int(threads * AHEAD_SECONDS / max(slowest, 1e-6)))

    def weigh(self, queue: str, mean: float) -> None:
        """So many characters had the payloads of a claim on average."""
        self._weights[queue] = (self._weights.get(queue, mean) + mean) / 2

    def fit(self, queue: str, room: int) -> int:
        """How many payloads of this queue, as they have been of late, have so many characters together."""
        return int(max(0, room) / max(1.0, self._weights.get(queue, 1.0)))
