"""What a handler is told about its attempt, and how it learns that it should stop."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from threading import Event, Lock
from typing import Any
from uuid import UUID

from django.apps import apps

from jobs.errors import Cancelled
from jobs.ids import due_of


class StopFlag:
    """A threading.Event that costs nothing until somebody waits for it: there is one for every attempt."""

    __slots__ = ("_event", "_set")
    _lock = Lock()

    def __init__(self) -> None:
        self._set, self._event = False, None  # type: bool, Event | None

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        if self._event is not None:
            self._event.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for `set()`, for up to `timeout` seconds; returns whether it was called."""
        with self._lock:
            if self._event is None:
                self._event = Event()
        if self._set:  # before the event was there to be set
            return True
        return self._event.wait(timeout)


@dataclass(slots=True, eq=False)
class Context:
    job_id: UUID
    job_type: str
    attempt: int
    """Number of this attempt, from 1."""
    max_attempts: int
    tenant: str
    queue: str
    group: str | None = None
    stop: StopFlag = field(default_factory=StopFlag, repr=False)
    """Set on a cancel request, at the soft timeout, and when the lease is nearly lost."""

    @property
    def due_at(self) -> datetime:
        """When it was to run, in UTC."""
        return due_of(self.job_id)

    @property
    def cancelled(self) -> bool:
        """True when the body should stop: poll it in long loops."""
        return self.stop.is_set()

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this job: hand it to systems that drop repeated requests."""
        return str(self.job_id)

    @property
    def slot(self) -> datetime | None:
        """The slot of the cron definition that this job stands for, asked of the database; None for other jobs. Of a
        backfill, and of a delayed run, it lies before `due_at`. An async handler asks in a thread (sync_to_async)."""
        manager: Any = apps.get_model("jobs", "Job").objects
        slot: datetime | None = manager.values_list("slot", flat=True).get(pk=self.job_id)
        return slot

    def heartbeat(self) -> None:
        """Raise Cancelled when the body should stop; writes nothing and costs nothing."""
        if self.stop.is_set():
            raise Cancelled(f"job {self.job_id} was asked to stop")
