"""How many ran at once under each limit. A run counts until its lease was lost: a body that is frozen, or cut off from
the database, cannot end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from tests.storm.environment import LEASE
from tests.storm.notes import Notes
from tests.storm.runs import Run

UNRENEWED = LEASE * 2 / 3
"""Seconds for which a lease lasts at least when something holds up its renewal."""
UNWRITTEN = 1.0
"""Seconds before a crash of the server of which it may forget the claims."""
BUFFERED = 1.0
"""Seconds after it in which a body may start whose claim it forgot."""
CEILINGS: list[tuple[str, Callable[[Run], str]]] = [
    ("tenant", lambda run: run.tenant),
    ("queue", lambda run: run.queue),
]


def most(
    runs: Mapping[UUID, list[Run]],
    notes: Notes,
    tenants: Mapping[str, int],
    queues: Mapping[str, int],
) -> dict[str, tuple[int, int]]:
    """By limit: the most that ran at once, and the limit. Rates, pairs and keys have their place beside these."""
    limits: dict[str, Mapping[str, int]] = {"tenant": tenants, "queue": queues}
    held = [(run, run.start, held_until(run, notes)) for some in runs.values() for run in some]
    return {
        f"{kind} {name}": (_most_at_once((start, end) for run, start, end in held if of(run) == name), limit)
        for kind, of in CEILINGS
        for name, limit in limits[kind].items()
    }


def offenders(runs: Mapping[UUID, list[Run]], notes: Notes, name: str) -> list[tuple[Run, float]]:
    """Those that ran at once when there were most of them under this limit, and until when each counts."""
    kind, _, which = name.partition(" ")
    of = dict(CEILINGS)[kind]
    held = [(run, held_until(run, notes)) for some in runs.values() for run in some if of(run) == which]
    worst = max(
        (run.start for run, _ in held),
        key=lambda at: sum(run.start <= at < until for run, until in held),
    )
    return [(run, until) for run, until in held if run.start <= worst < until]


def held_until(run: Run, notes: Notes) -> float:
    """When this run ended, its process died or its lease was lost, at the earliest."""
    lost = run.end if run.end is not None else notes.last_seen.get(run.pid, run.start)
    for strike in notes.strikes:
        hit = strike.pids is None or run.pid in strike.pids
        if hit and run.start <= strike.ended + (BUFFERED if strike.at_once else 0.0):
            lost = min(lost, strike.began - UNWRITTEN if strike.at_once else strike.began + UNRENEWED)
    return max(run.start, lost)


def _most_at_once(intervals: Iterable[tuple[float, float]]) -> int:
    changes = sorted(change for start, end in intervals if end > start for change in ((start, 1), (end, -1)))
    at_once = highest = 0
    for _, change in changes:
        at_once += change
        highest = max(highest, at_once)
    return highest
