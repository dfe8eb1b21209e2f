"""Queues: what waits in each, since when, what runs and who serves it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest

from jobs.console import course
from jobs.console.amounts import Count
from jobs.console.held import in_force
from jobs.console.reading import rows
from jobs.console.remember import remembered
from jobs.console.sections import hold_url
from jobs.models.rollup import Kind
from jobs.registry import registry
from jobs.sql import load

CAP = 5_000
NAMES = 100
LATE = timedelta(seconds=30)
"""A queue whose oldest job waits longer than this is late."""


@dataclass(frozen=True)
class QueueLine:
    name: str
    pk: int | None
    max_running: int | None
    running: int
    running_since: datetime | None
    waiting: Count
    oldest: datetime | None
    later: Count
    next_at: datetime | None
    workers: int
    now: datetime
    is_held: bool

    @property
    def wait(self) -> timedelta | None:
        """How long its oldest due job has waited."""
        return None if self.oldest is None else max(self.now - self.oldest, timedelta())

    @property
    def is_late(self) -> bool:
        """Longer than it should; what is held waits on purpose."""
        return not self.is_held and self.waits_long

    @property
    def waits_long(self) -> bool:
        return self.wait is not None and self.wait > LATE

    @property
    def is_unserved(self) -> bool:
        return bool(self.waiting) and not self.workers

    @property
    def is_full(self) -> bool:
        return self.max_running is not None and self.running >= self.max_running

    @property
    def condition(self) -> str:
        """In one word, the worst first."""
        if self.is_unserved:
            return "no worker"
        if self.is_held:
            return "held"
        if self.is_late:
            return "late"
        if self.is_full and self.waiting:
            return "at its limit"
        if self.running or self.waiting:
            return "working"
        return "idle"


@remembered(3)
def queue_lines(using: str = "default", *, after: str = "", name: str | None = None) -> list[QueueLine]:
    """In the order of their names, from `after` on, one more than a page of them; or the one called `name`."""
    held = in_force(None)
    known = sorted({each.queue for each in registry.types()} | ({name} if name else set()))
    found = rows(
        load("console/queues"),
        {"known": known, "cap": CAP, "names": NAMES + 1, "after": after, "name": name},
        using,
    )
    return [
        QueueLine(
            name=queue, pk=pk, max_running=limit, running=running, running_since=since, waiting=Count(due, CAP),
            oldest=oldest, later=Count(later, CAP), next_at=next_at, workers=workers, now=now,
            is_held=held.stops("queue", queue),
        )
        for queue, pk, limit, running, since, due, oldest, later, next_at, workers, now in found
    ]  # fmt: skip


def gather(request: HttpRequest) -> dict[str, Any]:
    """All queues, a page of names at a time."""
    after = request.GET.get("from", "").replace("\0", "")[:100]
    lines = queue_lines(after=after)
    past = course.pasts(Kind.QUEUE, tuple(line.name for line in lines[:NAMES]))
    return {
        "lines": [(line, past[line.name]) for line in lines[:NAMES]],
        "following": lines[NAMES].name if len(lines) > NAMES else None,
        "first": after,
        "may_change": request.user.has_perm("jobs.change_queue"),
        "may_add": request.user.has_perm("jobs.add_queue"),
    }


def gather_one(request: HttpRequest) -> dict[str, Any]:
    name = request.GET.get("name", "").replace("\0", "")[:100]
    line = next(iter(queue_lines(name=name)), None) if name else None
    told = course.course(Kind.QUEUE, name, request.GET.get("span", ""))
    types = [each.name for each in registry.types() if each.queue == name]
    return {
        "name": name,
        "line": line,
        "types": types,
        "course": told,
        "spans": list(course.SPANS),
        "flow": told.flow(),
        "lateness": told.lateness(),
        "may_hold": request.user.has_perm("jobs.add_hold"),
        "hold_url": hold_url("queue", name),
        "may_change": request.user.has_perm("jobs.change_queue"),
        "may_add": request.user.has_perm("jobs.add_queue"),
    }
