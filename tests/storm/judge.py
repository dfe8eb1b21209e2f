"""The judgement: what the client was promised and what the handlers did, against what the scheduler says in the end.
Pure: it knows no database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from tests.storm import blame, ceilings
from tests.storm.environment import DOOMED_ATTEMPTS
from tests.storm.facts import Fact, Facts
from tests.storm.ledger import ERROR, SNOOZE, Line
from tests.storm.notes import Notes, Strike
from tests.storm.recovery import Recoveries, recoveries
from tests.storm.runs import Run, runs_of

CRASHES = 3
"""After so many crashes of its process, each alone in it, a job ends as failed."""
FAILING = frozenset({"storm.doomed", "storm.poison"})
BACK = 0.95
"""Share of the throughput before the storm that there must be again a lease and five seconds after it."""
CLOCK = 0.002
"""Seconds by which two readings of the clocks may disagree."""


@dataclass
class Verdict:
    lost: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    promised: int = 0
    ended: dict[str, int] = field(default_factory=dict)
    runs: int = 0
    excess: int = 0
    in_flight: int = 0
    """Runs that were under way when something struck."""
    hits: dict[str, list[int]] = field(default_factory=dict)
    """By kind of fault: for each strike, how many runs were under way."""
    most: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of what is limited: the most at once, and the limit."""
    recoveries: dict[str, Recoveries] = field(default_factory=dict)
    """By kind of fault: how soon all that was owed had started."""
    atomic: int = 0
    crashed_out: int = 0
    """Innocent jobs that ended as failed, visibly, because their process died three times."""

    @property
    def exit_code(self) -> int:
        return 1 if self.lost or self.complaints else 0


def judge(
    lines: list[Line], notes: Notes, facts: Facts, tenants: Mapping[str, int], queues: Mapping[str, int]
) -> Verdict:
    runs = runs_of(lines)
    verdict = Verdict(promised=len(notes.promises), runs=sum(map(len, runs.values())))
    for fact in facts.jobs.values():
        verdict.ended[fact.state or "not ended"] = verdict.ended.get(fact.state or "not ended", 0) + 1
    verdict.lost = [*_lost(notes, facts, runs)]
    blamed = blame.blame(runs, notes.strikes, facts)
    verdict.excess, verdict.in_flight, verdict.hits = len(blamed.excess), blamed.in_flight, blamed.hits
    verdict.most = ceilings.most(runs, notes, tenants, queues)
    limited = frozenset({*tenants, *queues})
    strikes = [*_calm(notes), *notes.strikes]
    verdict.recoveries = recoveries(runs, strikes, facts, blamed.excess, limited)
    verdict.atomic = sum(fact.job_type == "storm.atomic" for fact in facts.jobs.values())
    verdict.crashed_out = sum(_crashed_out(fact) for fact in facts.jobs.values())
    verdict.complaints = [
        *_ends(notes, facts),
        *_early(facts, runs),
        *_after_cancel(notes, facts, runs),
        *_attempts(notes, runs, blamed),
        *blamed.complaints,
        *_limits(verdict.most, runs, notes),
        *_effects(facts),
        *_stale(facts, runs, blamed),
        *(f"{name} hit nothing that ran" for name, hits in verdict.hits.items() if not sum(hits)),
        *facts.breaches,
        *(f"{name} did not work again after the storm" for name in facts.idle),
    ]
    return verdict


def _calm(notes: Notes) -> Iterator[Strike]:
    """What the others are to be compared with: how much was owed, on this machine, while nothing struck."""
    if notes.calm_at is not None:
        yield Strike("(nothing)", notes.calm_at, notes.calm_at, None)


def slower(before: float, after: float) -> list[str]:
    """A complaint when the throughput after the storm, in jobs a second, is not that of before."""
    if after >= BACK * before:
        return []
    return [f"{after:.1f} jobs/s after the storm, {before:.1f} before: less than {BACK} of it"]


def _lost(notes: Notes, facts: Facts, runs: Mapping[UUID, list[Run]]) -> Iterator[str]:
    """What was promised, or stands in the tables, and has not ended for everybody to see; or is said to have completed
    although no run of it ever finished."""
    for promise in notes.promises:
        if promise.job_id not in facts.jobs:
            yield f"{promise.job_type} {promise.job_id} is gone without a trace"
    for job_id, fact in facts.jobs.items():
        if fact.state is None:
            yield f"{fact.job_type} {job_id} has not ended"
        elif fact.state == "completed" and not any(run.finished for run in runs.get(job_id, [])):
            yield f"{fact.job_type} {job_id} is said to have completed and no run of it finished"
        elif fact.state == "cancelled" and not fact.is_cron and job_id not in notes.cancel_tries:
            yield f"{fact.job_type} {job_id} was cancelled by nobody"


def _crashed_out(fact: Fact) -> bool:
    return fact.state == "failed" and fact.job_type not in FAILING and fact.crashes >= CRASHES


def _ends(notes: Notes, facts: Facts) -> Iterator[str]:
    for job_id, fact in facts.jobs.items():
        if fact.state == "failed" and fact.job_type not in FAILING and not _crashed_out(fact):
            yield f"{fact.job_type} {job_id} failed and nothing was wrong with it"
        if fact.state == "completed" and fact.job_type in FAILING:
            yield f"{fact.job_type} {job_id} cannot have completed"


def _early(facts: Facts, runs: Mapping[UUID, list[Run]]) -> Iterator[str]:
    for job_id, some in runs.items():
        fact = facts.jobs.get(job_id)
        if fact and some[0].start < fact.due - CLOCK:
            yield f"{fact.job_type} {job_id} started {fact.due - some[0].start:.4f} s early"


def _after_cancel(notes: Notes, facts: Facts, runs: Mapping[UUID, list[Run]]) -> Iterator[str]:
    """One that had not begun never runs. One that ran has been asked: at most the claim that was in hand starts, and no
    further attempt is made."""
    for cancel in notes.cancels:
        fact = facts.jobs.get(cancel.job_id)
        later = [run for run in runs.get(cancel.job_id, []) if run.start > cancel.at]
        allowed = 0 if cancel.ended else 1
        if len(later) > allowed:
            yield f"job {cancel.job_id} ran {later[-1].start - cancel.at:.3f} s after its cancel was confirmed"
        if fact and fact.state not in (("cancelled",) if cancel.ended else ("cancelled", "completed", None)):
            yield f"job {cancel.job_id} ended as {fact.state} after its cancel was confirmed"


def _attempts(notes: Notes, runs: Mapping[UUID, list[Run]], blamed: blame.Blamed) -> Iterator[str]:
    for job_id, some in runs.items():
        if over := [run for run in some if run.attempt > run.max_attempts]:
            yield f"{over[0].job_type} {job_id}: attempt {over[0].attempt} of {over[0].max_attempts}"
        if some[0].job_type == "storm.doomed":
            allowed = DOOMED_ATTEMPTS * (1 + notes.retries.get(job_id, 0))
            allowed += sum(run.job_id == job_id for run in blamed.excess)
            if len(some) > allowed:
                yield f"{some[0].job_type} {job_id} ran {len(some)} times, {allowed} are allowed"


def _limits(
    most: Mapping[str, tuple[int, int]], runs: Mapping[UUID, list[Run]], notes: Notes
) -> Iterator[str]:
    for name, (seen, limit) in most.items():
        if seen > limit:
            who = "; ".join(
                f"{run.job_type} {run.job_id} in {run.pid} from {run.start:.2f} to {until:.2f} ({run.how})"
                for run, until in ceilings.offenders(runs, notes, name)
            )
            yield f"{name} had {seen} running at once, {limit} are allowed: {who}"


def _effects(facts: Facts) -> Iterator[str]:
    for job_id, fact in facts.jobs.items():
        if fact.job_type != "storm.atomic" or fact.state is None:
            continue
        expected = 1 if fact.state == "completed" else 0
        if facts.effects[job_id] != expected:
            yield f"{fact.job_type} {job_id} ended as {fact.state} with {facts.effects[job_id]} effects"


def _stale(facts: Facts, runs: Mapping[UUID, list[Run]], blamed: blame.Blamed) -> Iterator[str]:
    """The completion that was accepted is that of the last run which had started by then: whoever started before it had
    lost its lease. (Of a claim that the server lost in a crash, the body may start after the claim that counts.)"""
    for job_id, fact in facts.jobs.items():
        if fact.state != "completed" or fact.finished is None:
            continue
        started = [run for run in runs.get(job_id, []) if run.start <= fact.finished + CLOCK]
        if not started or blamed.claim_was_lost(started[-1]):
            continue
        last = started[-1]
        if (last.attempt, last.pid) != (fact.attempt, fact.pid):
            yield (
                f"{fact.job_type} {job_id}: attempt {fact.attempt} of process {fact.pid} was accepted although attempt "
                f"{last.attempt} of process {last.pid} had started"
            )
        elif last.how in (ERROR, SNOOZE):
            yield f"{fact.job_type} {job_id}: completed by a run that ended with {last.how}"
