"""How soon after each fault all that it held up runs again: the seconds from its end to the last start that was owed
then. Owed is the first start of a job that had fallen due, and another start of a job whose run was lost. Jobs that may
have to wait for something else as well do not count: for a limit, for a worker with newer code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from uuid import UUID

from tests.storm.facts import Facts
from tests.storm.notes import Strike
from tests.storm.runs import Run

APART = frozenset({"storm.newer", "storm.poison"})
"""Types that not every worker knows, or that no worker survives."""
OWED = 60.0
"""Seconds before the end of a fault from which a lost run is still looked for."""


@dataclass(frozen=True, slots=True)
class Debt:
    """A start that somebody waits for, from a moment on until it comes."""

    since: float
    paid: float
    pid: int | None = None
    """Whose lost run it replaces."""


@dataclass(slots=True)
class Recoveries:
    """Of one kind of fault."""

    alone: list[float] = field(default_factory=list)
    """Seconds, where nothing else struck before all was paid."""
    disturbed: list[float] = field(default_factory=list)

    @property
    def strikes(self) -> int:
        return len(self.alone) + len(self.disturbed)

    @property
    def seconds(self) -> list[float]:
        """What counts: those that were alone, when there are such."""
        return self.alone or self.disturbed

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def most(self) -> float:
        return max(self.seconds)


def recoveries(
    runs: Mapping[UUID, list[Run]],
    strikes: Sequence[Strike],
    facts: Facts,
    excess: Iterable[Run],
    limited: frozenset[str],
) -> dict[str, Recoveries]:
    """By kind of fault. `excess`: the runs that were lost; `limited`: tenants and queues under a limit."""
    debts = [*_first_starts(runs, facts, limited), *_starts_anew(runs, excess, limited)]
    found: dict[str, Recoveries] = defaultdict(Recoveries)
    for strike in strikes:
        seconds = max((debt.paid - strike.ended for debt in debts if _owed(debt, strike)), default=0.0)
        paid = strike.ended + seconds
        alone = not any(other is not strike and strike.ended <= other.began < paid for other in strikes)
        (found[strike.name].alone if alone else found[strike.name].disturbed).append(seconds)
    return dict(found)


def _owed(debt: Debt, strike: Strike) -> bool:
    if debt.pid is not None and strike.pids is not None and debt.pid not in strike.pids:
        return False
    return strike.ended - OWED < debt.since <= strike.ended < debt.paid


def _first_starts(runs: Mapping[UUID, list[Run]], facts: Facts, limited: frozenset[str]) -> Iterator[Debt]:
    for job_id, some in runs.items():
        fact, first = facts.jobs.get(job_id), some[0]
        if fact is not None and not _waits_for_else(first, limited):
            yield Debt(fact.due, first.start)


def _starts_anew(
    runs: Mapping[UUID, list[Run]], excess: Iterable[Run], limited: frozenset[str]
) -> Iterator[Debt]:
    for run in excess:
        later = [other.start for other in runs[run.job_id] if other.start > run.start]
        if later and not _waits_for_else(run, limited):
            yield Debt(run.start, later[0], run.pid)


def _waits_for_else(run: Run, limited: frozenset[str]) -> bool:
    return run.job_type in APART or not limited.isdisjoint({run.tenant, run.queue})
