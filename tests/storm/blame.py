"""Which runs were too many, and whether each of them was under way when something struck: at least once is promised, and
no more often than faults excuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from tests.storm.environment import LEASE
from tests.storm.facts import Facts
from tests.storm.ledger import ERROR, SNOOZE
from tests.storm.notes import Strike
from tests.storm.runs import Run

SETTLING = 2.0
"""Seconds after the end of a body in which its result may still be on the way."""
AFTERMATH = LEASE
"""Seconds after a strike in which a lease may still end because of it."""
LOST_CLAIM = 5.0
"""Seconds after a crash of the server in which a body may start whose claim the crash has taken back."""


@dataclass
class Blamed:
    excess: list[Run] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    in_flight: int = 0
    hits: dict[str, list[int]] = field(default_factory=dict)
    strikes: Sequence[Strike] = ()

    def claim_was_lost(self, run: Run) -> bool:
        return any(
            strike.at_once
            and strike.pids is None
            and strike.began - 1 <= run.start <= strike.ended + LOST_CLAIM
            for strike in self.strikes
        )


def blame(runs: Mapping[UUID, list[Run]], strikes: Sequence[Strike], facts: Facts) -> Blamed:
    every = [run for some in runs.values() for run in some]
    all_strikes = [*strikes, *_poisonings(every)]
    blamed = Blamed(strikes=all_strikes)
    for strike in strikes:
        under_way = sum(_under_way(run, strike) for run in every)
        blamed.hits.setdefault(strike.name, []).append(under_way)
    blamed.in_flight = sum(any(_excuses(strike, run) for strike in all_strikes) for run in every)
    for job_id, some in runs.items():
        fact = facts.jobs.get(job_id)
        blamed.excess += _excess(some, fact.finished if fact else None)
    blamed.complaints = [
        f"{run.job_type} {run.job_id} ran once too often: its attempt {run.attempt} in process {run.pid}, which "
        f"{f'ended with {run.how}' if run.how else 'was cut off'}, was not under way at any fault"
        for run in blamed.excess
        if not any(_excuses(strike, run) for strike in all_strikes)
    ]
    return blamed


def _excess(some: list[Run], finished: float | None) -> Iterable[Run]:
    """Runs that were followed by another although they neither failed nor asked for one, or whose failure was not counted;
    and such as began when the job had ended."""
    for run, following in zip(some, [*some[1:], None], strict=True):
        if finished is not None and run.start > finished:
            yield run
        elif following is None or (finished is not None and following.start > finished):
            continue
        elif run.how not in (ERROR, SNOOZE) or (run.how == ERROR and following.attempt <= run.attempt):
            yield run


def _excuses(strike: Strike, run: Run) -> bool:
    hit = strike.pids is None or run.pid in strike.pids
    return hit and _overlaps(run, strike.began - SETTLING, strike.ended + AFTERMATH)


def _under_way(run: Run, strike: Strike) -> bool:
    """While it lasted; a strike at what runs no bodies is judged by all that ran."""
    return (not strike.pids or run.pid in strike.pids) and _overlaps(run, strike.began, strike.ended)


def _overlaps(run: Run, began: float, ended: float) -> bool:
    return run.start <= ended and (run.end is None or run.end >= began)


def _poisonings(runs: Iterable[Run]) -> list[Strike]:
    return [
        Strike("poison", run.start, run.start + 1.0, frozenset({run.pid}), at_once=True)
        for run in runs
        if run.job_type == "storm.poison"
    ]
