"""What the client and the storm noted: promises, cancels, retries and strikes. Times are boot time."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Promise:
    """A job whose id schedule() returned."""

    job_id: UUID
    job_type: str
    due_at: datetime
    asked: float


@dataclass(frozen=True, slots=True)
class Cancel:
    """A cancel that was confirmed at `at`; `ended`: the job had not begun and never will. Else it was running and has
    been asked to stop."""

    job_id: UUID
    at: float
    ended: bool


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault while it lasted."""

    name: str
    began: float
    ended: float
    pids: frozenset[int] | None
    """Whom it hit; None: all."""
    at_once: bool = False
    """Claims may be lost at its beginning; else not before most of a lease has passed."""


@dataclass
class Notes:
    """Shared by the client's threads."""

    promises: list[Promise] = field(default_factory=list)
    cancels: list[Cancel] = field(default_factory=list)
    cancel_tries: set[UUID] = field(default_factory=set)
    """Also those whose reply was lost."""
    retries: dict[UUID, int] = field(default_factory=dict)
    """How often a retry may have been granted."""
    strikes: list[Strike] = field(default_factory=list)
    calm_at: float | None = None
    """A moment before the storm, when nothing had struck."""
    last_seen: dict[int, float] = field(default_factory=dict)
    """When each process that runs bodies was last seen alive."""
    refused: int = 0
    """Calls of schedule() that raised: nothing was promised."""
    lock: threading.Lock = field(default_factory=threading.Lock)
