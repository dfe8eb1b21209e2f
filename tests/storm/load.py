"""The background load: jobs of all kinds and several tenants, at a steady rate, drawn from the seed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

from django.db import DatabaseError, connections
from django.db.models.functions import Now

from jobs.clock import boottime
from jobs.errors import SchedulerError
from jobs.models import Job, QueueEntry
from tests.storm.notes import Cancel, Notes, Promise

RATE = 20.0
"""Jobs a second."""
TENANTS = {"alpha": 8, "beta": 2, "gamma": 1, "delta": 1}
LIMITS = {"beta": 4, "gamma": 2}
"""max_running of tenants."""
QUEUE_LIMITS = {"storm.narrow": 2}

Payload = Callable[[Random], dict[str, Any]]

KINDS: dict[str, tuple[int, Payload]] = {
    "storm.short": (60, lambda chance: {"seconds": chance.uniform(0.0, 0.3)}),
    "storm.slow": (9, lambda chance: {"seconds": chance.uniform(1.0, 4.0)}),
    "storm.deaf": (2, lambda chance: {"seconds": chance.uniform(1.0, 4.0)}),
    "storm.narrow": (5, lambda chance: {"seconds": chance.uniform(0.1, 0.4)}),
    "storm.unique": (5, lambda chance: {"seconds": chance.uniform(0.0, 0.5)}),
    "storm.flaky": (8, lambda chance: {"failures": chance.randrange(1, 4)}),
    "storm.doomed": (2, lambda chance: {}),
    "storm.snooze": (3, lambda chance: {"until": boottime() + chance.uniform(1.0, 5.0)}),
    "storm.atomic": (7, lambda chance: {"seconds": chance.uniform(0.0, 1.0)}),
    "storm.newer": (4, lambda chance: {"seconds": chance.uniform(0.0, 0.3)}),
}
"""Weight and payload."""
BEHIND, LOOK = 400, 20
"""With so many jobs waiting the client holds back, which a busy machine cannot keep up with; it looks once in so many."""
POISON_EVERY = 600
CANCELLED = 0.08
"""Share of the jobs that are cancelled a while after they were scheduled."""
KEYS = 5


class Client:
    """The sibling app, in two threads: one schedules, one cancels and retries. Each notes what it was told, no more."""

    def __init__(self, seed: int, notes: Notes) -> None:
        self.notes = notes
        self._chance = Random(f"{seed} load")
        self._stop = threading.Event()
        self._doubtful: list[tuple[float, Promise]] = []
        self._threads = [
            threading.Thread(target=self._forever, args=(act,), name=act.__name__, daemon=True)
            for act in (self._schedule, self._operate)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def complaints(self) -> list[str]:
        """A verb raised what no caller expects: its thread is gone."""
        return [f"the client's {each.name} raised" for each in self._threads if not each.is_alive()]

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _forever(self, act: Callable[[int], None]) -> None:
        begun, number = time.monotonic(), 0
        while not self._stop.wait(max(0.0, begun + number / RATE - time.monotonic())):
            begun = max(
                begun, time.monotonic() - number / RATE - 1.0
            )  # what an outage held up is not made up for
            number += 1
            try:
                act(number)
            except (DatabaseError, SchedulerError):
                self.notes.refused += 1
                connections["default"].close()
        connections.close_all()

    def _schedule(self, number: int) -> None:
        while number % LOOK == 0 and self._waiting() > BEHIND and not self._stop.wait(0.5):
            pass
        chance = self._chance
        (kind,) = chance.choices(list(KINDS), [weight for weight, _ in KINDS.values()])
        payload = KINDS[kind][1](chance)
        if number % POISON_EVERY == POISON_EVERY // 2:
            kind, payload = "storm.poison", {}
        delay = timedelta(
            seconds=chance.choice([0.0, 0.0, chance.uniform(0.5, 4.0), chance.uniform(5.0, 12.0)])
        )
        (tenant,) = chance.choices(list(TENANTS), list(TENANTS.values()))
        key = f"key {chance.randrange(KEYS)}" if kind == "storm.unique" else None
        cancel_after = chance.uniform(0.0, 6.0) if chance.random() < CANCELLED else None
        asked = boottime()
        job = Job.objects.schedule(
            kind,
            {"number": number, **payload},
            delay=delay,
            tenant=tenant,
            unique_key=key,
            priority=chance.choice([0, 0, 0, 5]),
        )
        promise = Promise(job.id, kind, job.due_at, asked)
        if job.was_created:
            self.notes.promises.append(promise)
        if cancel_after is not None or kind == "storm.doomed":
            with self.notes.lock:
                self._doubtful.append((asked + (cancel_after or 8.0), promise))

    def _waiting(self) -> int:
        return QueueEntry.objects.filter(run_at__lte=Now(), lease_token__isnull=True).count()

    def _operate(self, number: int) -> None:
        """Cancel what is due for it; retry some of what failed."""
        with self.notes.lock:
            due = [each for each in self._doubtful if each[0] <= boottime()][:5]
            self._doubtful = [each for each in self._doubtful if each not in due]
        for _, promise in due:
            if promise.job_type == "storm.doomed":
                self._retry(promise)
            else:
                self._cancel(promise)

    def _cancel(self, promise: Promise) -> None:
        self.notes.cancel_tries.add(promise.job_id)
        report = Job.objects.filter(pk=promise.job_id).cancel()
        if report.changed or report.requested:
            self.notes.cancels.append(Cancel(promise.job_id, boottime(), bool(report.changed)))

    def _retry(self, promise: Promise) -> None:
        if promise.job_id.int % 2:
            before = self.notes.retries.get(promise.job_id, 0)
            self.notes.retries[promise.job_id] = before + 1  # before the call: its reply may be lost
            if not Job.objects.filter(pk=promise.job_id).retry().changed:
                self.notes.retries[promise.job_id] = before
