"""Workers and dispatchers: who lives, what each holds, who was lost without a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest

from jobs import clock
from jobs.conf import conf
from jobs.console.reading import rows
from jobs.console.remember import remembered
from jobs.models import ProcessKind
from jobs.sql import load

LIMIT = 500
RECENT = timedelta(days=1)
LOOK_BACK = timedelta(hours=1)
WORKING = (ProcessKind.SUPERVISOR.value, ProcessKind.WORKER.value)
DISPATCHING = (ProcessKind.DISPATCHER.value,)


@dataclass(frozen=True)
class ProcessLine:
    pk: int
    kind: str
    host: str
    pid: int
    parent_id: int | None
    queues: Sequence[str]
    types: Sequence[str]
    started_at: datetime
    lease_until: datetime
    ended_at: datetime | None
    holds: int
    since: datetime | None
    state: str
    now: datetime

    @property
    def is_live(self) -> bool:
        return self.state == "live"

    @property
    def age(self) -> timedelta:
        return (self.ended_at or self.now) - self.started_at

    @property
    def heard(self) -> timedelta:
        """Since its last sign of life; renewals come at a third of the lease."""
        return max(self.now - (self.lease_until - conf().lease), timedelta())

    @property
    def longest(self) -> timedelta | None:
        """How long it has held what it holds longest."""
        return None if self.since is None else max(self.now - self.since, timedelta())


@remembered(3)
def process_lines(kinds: tuple[str, ...], using: str = "default") -> list[ProcessLine]:
    found = rows(load("console/processes"), {"kinds": list(kinds), "limit": LIMIT}, using)
    return [ProcessLine(*row) for row in found]


@remembered(3)
def dispatch_lag(using: str = "default") -> timedelta | None:
    """How far the dispatchers are behind: the oldest timer whose time has come. None: none waits."""
    now = clock.now(using)
    ((oldest, moment),) = rows(load("console/dispatch_lag"), {"start": now - LOOK_BACK, "end": now}, using)
    return None if oldest is None else max(moment - oldest, timedelta())


def gather_workers(request: HttpRequest) -> dict[str, Any]:
    lines = process_lines(WORKING)
    live = [line for line in lines if line.is_live]
    return {
        "groups": _by_supervisor(live),
        "lost": [line for line in lines if line.state == "lost"],
        "ended": [line for line in lines if line.state == "ended"],
        "holds": sum(line.holds for line in live),
        "children": sum(line.kind == ProcessKind.WORKER for line in live),
        "hosts": len({line.host for line in live}),
        "lease": conf().lease,
        "is_cut": len(lines) >= LIMIT,
    }


def gather_dispatchers(request: HttpRequest) -> dict[str, Any]:
    lines = process_lines(DISPATCHING)
    lag = dispatch_lag()
    return {
        "live": [line for line in lines if line.is_live],
        "lost": [line for line in lines if line.state == "lost"],
        "ended": [line for line in lines if line.state == "ended"],
        "lag": lag,
        "is_behind": lag is not None and lag > conf().idle_period,
        "at_least": lag is not None and lag >= LOOK_BACK - timedelta(seconds=5),
        "conf": conf(),
    }


def _by_supervisor(lines: Sequence[ProcessLine]) -> list[tuple[ProcessLine | None, list[ProcessLine]]]:
    """Each supervisor with its children; children whose supervisor is gone come last."""
    groups: dict[int | None, list[ProcessLine]] = {}
    heads = {line.pk: line for line in lines if line.kind == ProcessKind.SUPERVISOR}
    for line in lines:
        if line.kind == ProcessKind.WORKER:
            groups.setdefault(line.parent_id if line.parent_id in heads else None, []).append(line)
    alone = groups.pop(None, [])
    found: list[tuple[ProcessLine | None, list[ProcessLine]]] = [
        (head, groups.get(pk, [])) for pk, head in heads.items()
    ]
    return found + ([(None, alone)] if alone else [])
