"""What a handler is told about its attempt, and how it learns that it should stop."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from uuid import UUID

from jobs.errors import Cancelled


@dataclass(frozen=True, slots=True)
class Context:
    job_id: UUID
    job_type: str
    attempt: int
    """Number of this attempt, from 1."""
    max_attempts: int
    due_at: datetime
    tenant: str
    queue: str
    group: str | None = None
    stop: Event = field(default_factory=Event, repr=False)
    """Set on a cancel request, at the soft timeout, and when the lease is nearly lost."""

    @property
    def cancelled(self) -> bool:
        """True when the body should stop: poll it in long loops."""
        return self.stop.is_set()

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this job: hand it to systems that drop repeated requests."""
        return str(self.job_id)

    def heartbeat(self) -> None:
        """Raise Cancelled when the body should stop; writes nothing and costs nothing."""
        if self.stop.is_set():
            raise Cancelled(f"job {self.job_id} was asked to stop")
