"""The life of a job as a small model in plain Python: what every verb should do, without a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

from jobs.states import JobState

Place = Literal["timer", "entry", "outcome"]
Waits = Literal["retry", "snooze", "reschedule"]
MAX_CRASHES, SUSPECT = 3, 2


@dataclass
class ModelJob:
    """One job: where it is, and what its row there says."""

    job_id: UUID
    max_attempts: int
    old: bool = False
    """Of the day that is pruned now and then."""
    early: bool = False
    """Its due time has not come."""
    key: str | None = None
    asked_attempts: int = 0
    place: Place = "entry"
    ended: JobState | None = None
    due: bool = True
    """Its run time has come."""
    waits: Waits | None = None
    attempt: int = 0
    crashes: int = 0
    lease: UUID | None = None
    process: int | None = None
    flagged: bool = False
    stale: list[UUID] = field(default_factory=list)
    """Its earlier leases. (Batch mates share theirs.)"""

    def __post_init__(self) -> None:
        self.asked_attempts = self.max_attempts

    @property
    def state(self) -> JobState:
        if self.ended:
            return self.ended
        if self.lease:
            return JobState.RUNNING
        if self.place == "entry" and self.due:
            return JobState.QUEUED
        return JobState.RETRYABLE if self.waits == "retry" else JobState.SCHEDULED

    @property
    def claimable(self) -> bool:
        return self.state == JobState.QUEUED

    @property
    def suspect(self) -> bool:
        """Runs in a process of its own."""
        return self.crashes >= SUSPECT

    def dispatch(self) -> None:
        self.place, self.due = "entry", False  # ahead of its time

    def claim(self, process: int, lease: UUID) -> None:
        self.lease, self.process = lease, process
        self.attempt += 1

    def end(self, state: JobState) -> None:
        self._give_up()
        self.place, self.ended = "outcome", state

    def complete(self) -> None:
        self.end(JobState.COMPLETED)

    def fail(self, *, due: bool, final: bool = False, crashed: bool = False) -> None:
        self.crashes += crashed
        if self.flagged:
            self.end(JobState.CANCELLED)
        elif final or self.attempt >= self.max_attempts or (crashed and self.crashes >= MAX_CRASHES):
            self.end(JobState.FAILED)
        else:
            self._give_up()
            self.waits, self.due = "retry", due

    def snooze(self, *, due: bool) -> None:
        if self.flagged:
            return self.end(JobState.CANCELLED)
        self._give_up()
        self.attempt -= 1
        self.waits, self.due = "snooze", due
        return None

    def release(self, *, crashed: bool = False) -> None:
        if self.flagged:
            return self.end(JobState.CANCELLED)
        self._give_up()
        self.attempt -= 1
        self.crashes += crashed
        return None

    def rescue(self) -> None:
        """Nobody knows whether its body had started; on its last attempt it had."""
        if self.attempt >= self.max_attempts:
            self.fail(due=True, crashed=True)
        else:
            self.release(crashed=True)

    def cancel(self) -> None:
        if self.lease:
            self.flagged = True
        elif not self.ended:
            self.end(JobState.CANCELLED)

    def retry(self) -> None:
        self.place, self.ended, self.due, self.waits = "entry", None, not self.early, None
        self.max_attempts = max(self.max_attempts, self.attempt + self.asked_attempts)
        self.crashes, self.flagged = 0, False

    def reschedule(self, *, due: bool) -> None:
        self.place, self.waits, self.due = "entry", "reschedule", due

    def _give_up(self) -> None:
        if self.lease:
            self.stale.append(self.lease)
        self.lease = self.process = None
