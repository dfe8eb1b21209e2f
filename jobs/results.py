"""What a worker holds (`Claim`) and how an attempt ended (a `Result`): typed values, matched exhaustively."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from jobs.ids import due_of
from jobs.text import ErrorText

Key = tuple[int, str]
"""A concurrency key: whose it is (a tenant's id), and its name."""


class Held(NamedTuple):
    """The part of a claim by which it is settled."""

    job_id: UUID
    lease_token: UUID
    """Of its claim: batch mates share it."""
    process_id: int
    job_type: str
    attempt: int
    max_attempts: int
    crashes: int
    key: Key | None = None
    """The concurrency key it takes a place of."""

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Held:
        """From a row whose last columns are its tenant and its concurrency key."""
        job_id, token, process_id, kind, attempt, most, crashes, tenant_id, key = row
        name = None if key is None else (tenant_id, key)
        return cls(job_id, token, process_id, kind, attempt, most, crashes, name)

    @property
    def due_at(self) -> datetime:
        return due_of(self.job_id)


class Claim(NamedTuple):
    """A queue entry held under a lease, with what was asked for."""

    held: Held
    tenant_id: int
    tenant: str
    queue: str
    priority: int
    run_at: datetime
    """When its body may start."""
    group: str | None
    limited: bool
    """Held under a limit or a concurrency key: its body must not outlive its lease."""
    payload: str | None
    """JSON text; None until it was fetched, for which there may be no room."""


@dataclass(frozen=True, slots=True)
class Completed:
    result: str | None = None
    """JSON text; None for no result."""
    note: str | None = None
    """Why a result that the handler returned was not stored."""


DONE = Completed()
"""What most bodies end with."""


@dataclass(frozen=True, slots=True)
class Failed:
    error: ErrorText
    after: timedelta
    """How long to wait for the next attempt, if there is one."""
    final: bool = False
    """Whatever attempts are left."""
    crashed: bool = False
    """It took its process with it."""


@dataclass(frozen=True, slots=True)
class Snoozed:
    delay: timedelta


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The body stopped because a cancel was requested."""


@dataclass(frozen=True, slots=True)
class Released:
    """Given back unused; the attempt is not counted."""

    crashed: bool = False
    """Its supervisor was lost, so that nobody knows whether the body had started."""


Result = Completed | Failed | Snoozed | Cancelled | Released


class Settlement(NamedTuple):
    held: Held
    result: Result
    started_at: datetime | None
