"""Job types: what code here knows, what workers know, and what waits because nobody knows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import quantiles
from typing import Any
from uuid import UUID

from django.http import HttpRequest

from jobs import clock
from jobs.conf import conf
from jobs.console import course
from jobs.console.amounts import Count, lasting
from jobs.console.held import in_force
from jobs.console.reading import rows
from jobs.console.remember import remembered
from jobs.console.sections import hold_url
from jobs.models.rollup import Kind
from jobs.registry import JobType, registry
from jobs.sql import load
from jobs.states import JobState

CAP = 5_000
NAMES = 500
RUNS = 200
SPAN = timedelta(hours=24)


@dataclass(frozen=True)
class TypeLine:
    name: str
    known: JobType | None
    parked: Count
    workers: int
    is_held: bool

    @property
    def queue(self) -> str | None:
        """That of its jobs; a template cannot ask `known`, which it would call."""
        return self.known.queue if self.known else None

    @property
    def is_known(self) -> bool:
        return self.known is not None

    @property
    def condition(self) -> str:
        if self.parked:
            return "parked"
        if self.known is None:
            return "not in this code"
        if self.is_held:
            return "held"
        return "served" if self.workers else "no worker"


@remembered(3)
def type_lines(using: str = "default") -> list[TypeLine]:
    """Every type that code, a live worker or a parked job names."""
    found = {
        name: (parked, workers)
        for name, parked, workers in rows(load("console/types"), {"cap": CAP, "names": NAMES}, using)
    }
    names = sorted(set(found) | set(registry.names()))
    held = in_force(None)
    lines = []
    for name in names:
        parked, workers = found.get(name, (0, 0))
        is_held = held.stops("type", name)
        lines.append(TypeLine(name, registry.get(name), Count(parked, CAP), workers, is_held))
    return lines


@dataclass(frozen=True)
class Run:
    job_id: UUID
    due_at: datetime
    created_at: datetime
    state: str
    attempt: int
    started_at: datetime | None
    finished_at: datetime

    @property
    def took(self) -> timedelta | None:
        return None if self.started_at is None else self.finished_at - self.started_at

    @property
    def late(self) -> timedelta | None:
        """Of a first attempt: a later one starts late on purpose."""
        if self.started_at is None or self.attempt > 1:
            return None
        return max(self.started_at - max(self.due_at, self.created_at), timedelta())


@dataclass(frozen=True)
class Runs:
    runs: Sequence[Run]
    since: datetime

    @property
    def failed(self) -> int:
        return sum(run.state == JobState.FAILED for run in self.runs)

    @property
    def took(self) -> tuple[float, float] | None:
        return _halfway([run.took for run in self.runs])

    @property
    def late(self) -> tuple[float, float] | None:
        return _halfway([run.late for run in self.runs])


@remembered(5)
def runs_of(name: str, using: str = "default") -> Runs:
    """Of the latest jobs of one type that were due in the last day, those that have ended."""
    now = clock.now(using)
    found = rows(
        load("console/ended_of_type"), {"name": name, "start": now - SPAN, "end": now, "limit": RUNS}, using
    )
    return Runs([Run(*row) for row in found], now - SPAN)


def gather(request: HttpRequest) -> dict[str, Any]:
    lines = type_lines()
    past = course.pasts(Kind.TYPE, tuple(line.name for line in lines))
    return {"lines": [(line, past[line.name]) for line in lines]}


def gather_one(request: HttpRequest) -> dict[str, Any]:
    name = request.GET.get("name", "").replace("\0", "")[:100]
    line = next((line for line in type_lines() if line.name == name), None)
    told = course.course(Kind.TYPE, name, request.GET.get("span", ""))
    return {
        "name": name,
        "line": line,
        "course": told,
        "spans": list(course.SPANS),
        "flow": told.flow(),
        "lateness": told.lateness(),
        "may_hold": request.user.has_perm("jobs.add_hold"),
        "hold_url": hold_url("type", name),
        "policy": _policy(line.known) if line and line.known else [],
        "runs": runs_of(name) if name else None,
        "limit": RUNS,
    }


def _policy(known: JobType) -> list[tuple[str, Any]]:
    handler = known.handler
    described = (handler.__doc__ or "").strip().partition("\n\n")[0]
    return [
        ("Handler", known.origin),
        ("What it does", " ".join(described.split()) or None),
        ("Queue", known.queue),
        ("Attempts at most", known.max_attempts),
        ("Timeout", "none" if known.timeout is None else lasting(known.timeout)),
        ("Then killed after", None if known.timeout is None else lasting(conf().grace)),
        ("Runs as", "coroutine" if known.is_async else "thread"),
        ("Exactly once", "its writes and its completion are one transaction" if known.atomic else None),
        ("Exclusive", "its process is killed at the end of a lost lease" if known.exclusive else None),
        ("Cron in code", ", ".join(each.expression or f"every {each.every}" for each in known.crons) or None),
    ]


def _halfway(times: Sequence[timedelta | None]) -> tuple[float, float] | None:
    """Median and 95th percentile, in seconds; None: fewer than two."""
    seconds = [each.total_seconds() for each in times if each is not None]
    if len(seconds) < 2:
        return None
    cuts = quantiles(seconds, n=20, method="inclusive")
    return cuts[9], cuts[18]
