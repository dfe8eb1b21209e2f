"""The judgement: what the client was promised against what the handlers did. The scheduler's tables have no say in
whether a job was lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from tests.demo.ledger import END, ERROR, START, Line


@dataclass(frozen=True, slots=True)
class Noted:
    """A job, noted by the client when schedule() had returned its id."""

    job_id: UUID
    due_at: datetime
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class Slot:
    """A firing that a cron definition owes, by the wall clock."""

    job_type: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Scheduler:
    """What the scheduler itself says at the end."""

    failed: frozenset[UUID]
    clean: bool
    """Of checkjobs."""


@dataclass
class Verdict:
    scheduled: int
    poison: UUID
    lost: list[str] = field(default_factory=list)
    completed: int = 0
    slots_fired: int = 0
    retried: int = 0
    failed: int = 0
    run_again: int = 0
    """A run was cut off by a crash, or had finished when its process died, and another one finished."""
    finished_twice: int = 0
    lateness: list[float] = field(default_factory=list)
    """Seconds of each job that started, in rising order."""
    complaints: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        return 1 if self.complaints else 0

    def late(self, share: float) -> float:
        """The lateness that this share of the jobs did not exceed."""
        return self.lateness[min(int(share * len(self.lateness)), len(self.lateness) - 1)]


def judge(
    noted: Collection[Noted],
    slots: Collection[Slot],
    poison: UUID,
    lines: Iterable[Line],
    scheduler: Scheduler,
    *,
    skew: float = 0.0,
) -> Verdict:
    """`skew`: seconds by which the database's clock, in which jobs are due, is ahead of that of the ledger."""
    runs: dict[UUID, list[Line]] = defaultdict(list)
    for line in lines:
        runs[line.job_id].append(line)
    verdict = Verdict(len(noted), poison, failed=len(scheduler.failed))
    for job in noted:
        if job.job_id != poison:
            _judge_job(verdict, str(job.job_id), runs[job.job_id])
        if starts := [line.at for line in runs[job.job_id] if line.event == START]:
            due = max(job.due_at, job.asked_at).timestamp()
            verdict.lateness.append(max(0.0, min(starts) + skew - due))
    verdict.lateness.sort()
    fired = {(line.job_type, line.due_at) for some in runs.values() for line in some if line.event == END}
    for slot in slots:
        if (slot.job_type, slot.at) in fired:
            verdict.slots_fired += 1
        else:
            verdict.lost.append(f"{slot.job_type} of {slot.at:%H:%M}")
    verdict.complaints = _complaints(verdict, scheduler, runs[poison])
    return verdict


def _judge_job(verdict: Verdict, name: str, runs: list[Line]) -> None:
    ends = sum(line.event == END for line in runs)
    if not ends:
        verdict.lost.append(name)
        return
    over = {line.run for line in runs if line.event != START}
    cut_off = any(line.run not in over for line in runs)
    verdict.completed += 1
    verdict.retried += any(line.event == ERROR for line in runs)
    verdict.run_again += cut_off or ends > 1
    verdict.finished_twice += ends > 1


def _complaints(verdict: Verdict, scheduler: Scheduler, poison: list[Line]) -> list[str]:
    found = []
    if verdict.lost:
        found.append(f"{len(verdict.lost)} lost: {', '.join(verdict.lost[:5])}")
    if others := scheduler.failed - {verdict.poison}:
        found.append(f"failed although nothing is wrong with them: {', '.join(map(str, sorted(others)[:5]))}")
    if verdict.poison not in scheduler.failed:
        found.append(f"the poison job {verdict.poison} has not ended as failed")
    if any(line.event == END for line in poison):
        found.append(f"the poison job {verdict.poison} finished a run")
    if not scheduler.clean:
        found.append("checkjobs found breaches")
    return found
