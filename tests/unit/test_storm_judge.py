"""The storm's judge sees what is wrong: each rule is broken in a ledger where all else is right."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from tests.storm.environment import LEASE
from tests.storm.facts import Fact, Facts
from tests.storm.judge import Verdict, judge
from tests.storm.ledger import END, ERROR, SNOOZE, START, STOP, Ledger, Line, write
from tests.storm.notes import Cancel, Notes, Promise, Strike
from tests.storm.report import table

DUE = datetime(2030, 1, 1, tzinfo=UTC)
TENANTS, QUEUES = {"beta": 2}, {"storm.narrow": 1}
PID, OTHER = 10, 11


class Case:
    """Five jobs of one run each and one that was cancelled in time; everything went well."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.notes, self.facts = Notes(), Facts()
        self.first = self.job("storm.short", at=100.0)
        self.second = self.job("storm.short", at=101.0, tenant="beta")
        self.narrow = self.job("storm.narrow", at=102.0, queue="storm.narrow")
        self.atomic = self.job("storm.atomic", at=103.0)
        self.facts.effects[self.atomic] = 1
        self.doomed = self.job("storm.doomed", at=104.0, state="failed", how=ERROR, attempts=3)
        self.cancelled = self.job("storm.short", at=105.0, state="cancelled", how=None)
        self.notes.cancels.append(Cancel(self.cancelled, 104.0, ended=True))
        self.notes.cancel_tries.add(self.cancelled)

    def job(
        self,
        kind: str,
        *,
        at: float,
        state: str | None = "completed",
        how: str | None = END,
        attempts: int = 1,
        tenant: str = "alpha",
        queue: str = "storm.short",
    ) -> UUID:
        job_id = uuid4()
        self.notes.promises.append(Promise(job_id, kind, DUE, at - 1))
        moment = at
        for attempt in range(1, attempts + 1):
            if how is not None:
                moment = self.run(
                    job_id, at=moment, how=how, attempt=attempt, kind=kind, tenant=tenant, queue=queue
                )
        self.facts.jobs[job_id] = Fact(kind, at, False, state, attempts, 20, 0, PID, moment + 0.1)
        return job_id

    def run(
        self,
        job_id: UUID,
        *,
        at: float,
        how: str | None = END,
        attempt: int = 1,
        pid: int = PID,
        kind: str = "storm.short",
        tenant: str = "alpha",
        queue: str = "storm.short",
        seconds: float = 0.5,
        most: int = 20,
    ) -> float:
        line = Line(job_id, attempt, most, START, pid, at, kind, tenant, queue)
        self.lines.append(line)
        if how is not None:
            self.lines.append(replace(line, event=how, at=at + seconds))
        return at + seconds

    def tell(self, job_id: UUID, **changes: object) -> None:
        self.facts.jobs[job_id] = replace(self.facts.jobs[job_id], **changes)  # type: ignore[arg-type]

    def strike(
        self, began: float, ended: float, *pids: int, at_once: bool = False, name: str = "fault"
    ) -> None:
        hit = frozenset(pids) if pids else None
        self.notes.strikes.append(Strike(name, began, ended, hit, at_once))

    def forget_runs_of(self, job_id: UUID) -> None:
        self.lines = [line for line in self.lines if line.job_id != job_id]

    def judge(self) -> Verdict:
        return judge(self.lines, self.notes, self.facts, TENANTS, QUEUES)

    def complaint(self) -> str:
        """The one and only."""
        verdict = self.judge()
        assert verdict.exit_code == 1
        assert verdict.lost == []
        (complaint,) = verdict.complaints
        return complaint


@pytest.fixture
def case() -> Case:
    return Case()


def said(case: Case, verdict: Verdict) -> str:
    return table(verdict, case.notes, seed=7, throughput=(10.0, 9.9), restarts=3)


def test_all_went_well(case: Case) -> None:
    verdict = case.judge()
    assert (verdict.exit_code, verdict.lost, verdict.complaints) == (0, [], [])
    assert (verdict.promised, verdict.runs, verdict.excess, verdict.atomic) == (6, 7, 0, 1)
    assert verdict.ended == {"completed": 4, "failed": 1, "cancelled": 1}
    assert verdict.most == {"tenant beta": (1, 2), "queue storm.narrow": (1, 1)}
    assert said(case, verdict).endswith("\nseed 7\nlost 0")


def test_what_has_not_ended_is_lost(case: Case) -> None:
    case.tell(case.first, state=None, finished=None)
    verdict = case.judge()
    assert (verdict.exit_code, len(verdict.lost)) == (1, 1)
    assert "has not ended" in verdict.lost[0]
    assert said(case, verdict).endswith("\nlost 1")


def test_a_promise_without_a_row_is_lost(case: Case) -> None:
    del case.facts.jobs[case.cancelled]
    assert ["gone without a trace" in lost for lost in case.judge().lost] == [True]


@pytest.mark.parametrize("how", [None, ERROR, STOP, SNOOZE])
def test_a_completion_without_a_finished_run_is_lost(case: Case, how: str | None) -> None:
    case.forget_runs_of(case.first)
    case.run(case.first, at=100.0, how=how)
    assert ["no run of it finished" in lost for lost in case.judge().lost] == [True]


def test_a_cancel_that_nobody_asked_for_is_lost(case: Case) -> None:
    case.notes.cancel_tries.clear()
    assert ["cancelled by nobody" in lost for lost in case.judge().lost] == [True]
    case.tell(case.cancelled, is_cron=True)
    assert case.judge().exit_code == 0


def test_an_innocent_job_must_not_fail_unless_its_process_died_three_times(case: Case) -> None:
    case.tell(case.first, state="failed", crashes=2)
    assert "nothing was wrong with it" in case.complaint()
    case.tell(case.first, state="failed", crashes=3)
    verdict = case.judge()
    assert (verdict.exit_code, verdict.crashed_out) == (0, 1)


def test_what_always_fails_cannot_have_completed(case: Case) -> None:
    case.tell(case.doomed, state="completed", attempt=3)
    case.run(case.doomed, at=110.0, attempt=3, kind="storm.doomed")
    assert any("cannot have completed" in complaint for complaint in case.judge().complaints)


def test_a_start_before_the_due_time(case: Case) -> None:
    case.tell(case.first, due=100.0015)
    assert case.judge().exit_code == 0
    case.tell(case.first, due=100.003)
    assert "0.0030 s early" in case.complaint()


def test_a_run_after_a_confirmed_cancel(case: Case) -> None:
    case.tell(case.cancelled, due=104.0)
    case.run(case.cancelled, at=104.2, how=STOP)
    assert "after its cancel was confirmed" in case.complaint()


def test_a_cancelled_job_must_end_so(case: Case) -> None:
    case.tell(case.cancelled, state="failed", crashes=3)
    assert "ended as failed after its cancel" in case.complaint()


def test_a_running_job_that_was_asked_to_stop_makes_no_further_attempt(case: Case) -> None:
    case.notes.cancels = [Cancel(case.cancelled, 104.0, ended=False)]
    case.tell(case.cancelled, due=104.0)
    case.run(case.cancelled, at=104.1, how=STOP)  # the claim in hand
    assert case.judge().exit_code == 0
    case.run(case.cancelled, at=104.7, how=ERROR, attempt=2)
    case.strike(104.0, 104.5)
    assert "ran 0.700 s after its cancel was confirmed" in case.complaint()


def test_more_attempts_than_allowed(case: Case) -> None:
    case.forget_runs_of(case.first)
    case.run(case.first, at=100.0, attempt=21)
    case.tell(case.first, attempt=21)
    assert "attempt 21 of 20" in case.complaint()


def test_more_runs_than_attempts_and_retries_allow(case: Case) -> None:
    case.run(case.doomed, at=106.0, how=ERROR, kind="storm.doomed", attempt=4)
    case.tell(case.doomed, finished=107.0)
    assert "ran 4 times, 3 are allowed" in case.complaint()
    case.notes.retries[case.doomed] = 1
    assert case.judge().exit_code == 0


@pytest.mark.parametrize("how", [None, END, STOP])
def test_a_second_run_needs_a_fault(case: Case, how: str | None) -> None:
    case.forget_runs_of(case.first)
    case.run(case.first, at=50.0, how=how, pid=OTHER)
    case.run(case.first, at=100.0)
    case.tell(case.first, due=50.0)
    assert "ran once too often" in case.complaint()
    case.strike(40.0, 51.0, OTHER, name="hit")
    verdict = case.judge()
    assert (verdict.exit_code, verdict.excess, verdict.in_flight) == (0, 1, 1)
    assert verdict.hits == {"hit": [1]}
    assert verdict.recoveries["hit"].alone == [49.0]
    assert "\n  hit    49.0   49.0  1 (1)\n" in said(case, verdict)


def test_a_moment_without_a_fault_stands_beside_the_recoveries(case: Case) -> None:
    case.notes.calm_at = 100.5
    assert case.judge().recoveries["(nothing)"].alone == [0.0]
    case.tell(case.atomic, due=100.4)
    assert case.judge().recoveries["(nothing)"].alone == [2.5]


def test_a_failure_that_was_not_counted_needs_a_fault(case: Case) -> None:
    case.run(case.doomed, at=103.0, how=ERROR, kind="storm.doomed", pid=OTHER)
    case.tell(case.doomed, due=103.0)
    assert all("once too often" in each or "ran 4" in each for each in case.judge().complaints)
    case.strike(103.0, 104.0, OTHER)
    assert case.judge().exit_code == 0


def test_a_fault_of_another_process_or_time_is_no_excuse(case: Case) -> None:
    case.run(case.first, at=50.0, pid=OTHER)
    case.tell(case.first, due=50.0)
    case.strike(49.0, 51.0, PID, PID + 5)
    case.strike(49.0 - LEASE - 1.0, 49.5 - LEASE, OTHER)
    case.strike(53.0, 54.0, OTHER)
    assert any("ran once too often" in complaint for complaint in case.judge().complaints)


def test_a_run_that_starts_when_the_job_has_ended_needs_a_fault(case: Case) -> None:
    case.run(case.first, at=120.0, pid=OTHER)
    assert "ran once too often" in case.complaint()
    case.strike(119.0, 121.0, OTHER)
    assert case.judge().exit_code == 0


def test_a_poisoned_process_excuses_those_that_ran_beside(case: Case) -> None:
    poison = case.job("storm.poison", at=99.0, state="failed", how=None)
    case.run(poison, at=99.0, how=None, kind="storm.poison", pid=OTHER)
    case.run(case.first, at=98.9, how=None, pid=OTHER)
    case.tell(case.first, due=98.0)
    assert case.judge().exit_code == 0


def test_a_limit_that_was_exceeded(case: Case) -> None:
    case.job("storm.short", at=101.1, tenant="beta")
    assert case.judge().exit_code == 0
    case.job("storm.short", at=101.2, tenant="beta")
    assert case.complaint().startswith("tenant beta had 3 running at once, 2 are allowed: storm.short ")


def test_a_queue_limit_that_was_exceeded(case: Case) -> None:
    case.job("storm.narrow", at=102.4, queue="storm.narrow")
    assert case.complaint().startswith("queue storm.narrow had 2 running at once, 1 are allowed: ")


def test_one_after_the_other_is_within_a_limit(case: Case) -> None:
    case.job("storm.narrow", at=102.5, queue="storm.narrow")
    assert case.judge().exit_code == 0


def test_a_frozen_run_counts_until_its_lease_can_have_ended(case: Case) -> None:
    case.forget_runs_of(case.narrow)
    case.run(case.narrow, at=102.0, seconds=20.0, pid=OTHER, kind="storm.narrow", queue="storm.narrow")
    case.run(case.narrow, at=110.0, kind="storm.narrow", queue="storm.narrow")
    case.tell(case.narrow, finished=111.0)
    case.strike(103.0, 115.0, OTHER)
    assert case.judge().exit_code == 0
    case.notes.strikes.clear()
    case.strike(107.0, 115.0, OTHER)
    assert case.complaint().startswith("queue storm.narrow had 2 running at once, 1 are allowed: ")


def test_a_run_that_was_cut_off_counts_as_long_as_its_process_lived(case: Case) -> None:
    case.forget_runs_of(case.narrow)
    case.run(case.narrow, at=102.0, how=None, pid=OTHER, kind="storm.narrow", queue="storm.narrow")
    case.run(case.narrow, at=104.0, kind="storm.narrow", queue="storm.narrow")
    case.tell(case.narrow, finished=105.0)
    case.strike(103.0, 105.0, OTHER)
    case.notes.last_seen[OTHER] = 103.9
    assert case.judge().exit_code == 0
    case.notes.last_seen[OTHER] = 104.2
    assert case.complaint().startswith("queue storm.narrow had 2 running at once, 1 are allowed: ")


@pytest.mark.parametrize(("state", "effects"), [("completed", 0), ("completed", 2), ("cancelled", 1)])
def test_effects_of_an_atomic_job(case: Case, state: str, effects: int) -> None:
    case.tell(case.atomic, state=state)
    case.notes.cancel_tries.add(case.atomic)
    case.facts.effects[case.atomic] = effects
    assert case.complaint() == f"storm.atomic {case.atomic} ended as {state} with {effects} effects"


def test_a_stale_settle_that_was_accepted(case: Case) -> None:
    """Process 11 took the job over from 10; then 10 came back and its result stands."""
    case.forget_runs_of(case.first)
    case.run(case.first, at=100.0, seconds=20.0)
    case.run(case.first, at=110.0, seconds=20.0, attempt=2, pid=OTHER)
    case.strike(101.0, 119.0, PID)
    case.strike(119.0, 131.0, OTHER)
    case.tell(case.first, attempt=1, pid=PID, finished=120.1)
    assert "was accepted although attempt 2 of process 11 had started" in case.complaint()
    case.tell(case.first, attempt=2, pid=OTHER, finished=130.1)
    assert case.judge().exit_code == 0


def test_a_completion_by_a_run_that_failed(case: Case) -> None:
    case.run(case.first, at=100.6, how=ERROR, attempt=2)
    case.tell(case.first, attempt=2, finished=101.5)
    case.strike(100.0, 101.0)
    assert "completed by a run that ended with error" in case.complaint()


def test_after_a_crash_of_the_server_the_claim_that_counts_may_be_the_earlier_start(case: Case) -> None:
    case.run(case.first, at=100.05, pid=OTHER, seconds=0.2)
    case.strike(98.0, 100.01, at_once=True)
    assert case.judge().exit_code == 0


def test_a_kind_of_fault_that_hit_nothing(case: Case) -> None:
    case.strike(500.0, 501.0, name="far away")
    assert case.complaint() == "far away hit nothing that ran"
    case.strike(100.1, 100.2, name="far away")
    assert case.judge().exit_code == 0


def test_breaches_and_idle_processes(case: Case) -> None:
    case.facts.breaches.append("checkjobs: job 1 is in no place")
    assert case.complaint() == "checkjobs: job 1 is in no place"
    case.facts.breaches.clear()
    case.facts.idle.append("worker 3")
    assert case.complaint() == "worker 3 did not work again after the storm"


def test_the_ledger_gives_back_what_was_written(case: Case, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    assert ledger.read() == []
    for line in case.lines:
        write(ledger.file, line)
        assert ledger.read()[-1] == line
    with ledger.file.open("ab") as file:
        file.write(b"half a li")
    assert ledger.read() == case.lines
