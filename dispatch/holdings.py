"""What a worker holds: every claim from the buffer to its settlement, and why its body was told to stop."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from dispatch.slots import NEVER, Slots
from jobs.clock import boottime
from jobs.context import Context
from jobs.results import Claim, Held

LIGHT = 16_384
"""Characters of a payload that nobody counts."""


class Stop(Enum):
    CANCEL = "a cancel was requested"
    TIMEOUT = "its timeout has passed"
    LEASE = "the lease could not be renewed"
    LOST = "another process has taken it over"


@dataclass(slots=True, eq=False)
class Holding:
    claim: Claim
    context: Context
    claimed_at: float
    """Boot time, as are the deadlines."""
    started_at: datetime | None = None
    soft_deadline: float = NEVER
    slot: int | None = None
    reason: Stop | None = None
    loud: bool = False
    """Its tenant had its share of the threads already: others' go first."""

    def stop(self, reason: Stop) -> None:
        """Tell the body. The first reason stays; LOST replaces all."""
        if self.reason is None or reason is Stop.LOST:
            self.reason = reason
        self.context.stop.set()


class Holdings:
    """Shared by the worker's threads. A claim leaves the buffer by one atomic pop: either a body's thread starts it, or
    the main thread takes it back."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self._held: dict[int, Holding] = {}
        """By the identity of what its settlement holds: a job may be claimed again while its old claim is still here."""
        self._buffered: dict[int, Holding] = {}
        self._heavy: dict[int, int] = {}
        """The sizes of large payloads."""

    def __len__(self) -> int:
        return len(self._held)

    @property
    def waiting(self) -> int:
        """Claims whose bodies have not started."""
        return len(self._buffered)

    @property
    def weight(self) -> int:
        """Characters of large payloads."""
        return sum(list(self._heavy.values()))

    def all(self) -> list[Holding]:
        return list(self._held.values())

    def buffered(self) -> list[Holding]:
        return list(self._buffered.values())

    def of(self, held: Held) -> Holding | None:
        """What this claim is held by; None for one that was never in our hands, or was forgotten."""
        return self._held.get(id(held))

    def add(self, claim: Claim, *, loud: bool = False) -> Holding:
        held = claim.held
        context = Context(
            held.job_id,
            held.job_type,
            held.attempt,
            held.max_attempts,
            claim.tenant,
            claim.queue,
            claim.group,
        )
        holding = Holding(claim, context, boottime(), loud=loud)
        if len(claim.payload or "") > LIGHT:
            self._heavy[id(held)] = len(claim.payload or "")
        self._held[id(held)] = self._buffered[id(held)] = holding
        return holding

    def leave_buffer(self, holding: Holding) -> bool:
        """True for the one caller that may start it or give it back."""
        return self._buffered.pop(id(holding.claim.held), None) is not None

    def forget(self, holding: Holding) -> None:
        """It is settled, or no longer ours."""
        self._held.pop(id(holding.claim.held), None)
        self._heavy.pop(id(holding.claim.held), None)
        if holding.slot is not None:
            self.slots.clear(holding.slot)
            holding.slot = None
