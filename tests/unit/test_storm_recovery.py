"""How long a fault held up what was owed: measured from its end, whoever waited, and only where nothing else struck."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from tests.storm.facts import Fact, Facts
from tests.storm.judge import slower
from tests.storm.notes import Strike
from tests.storm.recovery import Recoveries, recoveries
from tests.storm.runs import Run

PID, OTHER = 10, 11
LIMITED = frozenset({"beta", "storm.narrow"})


class Case:
    """One fault from 100 to 102 that hit process 10."""

    def __init__(self) -> None:
        self.runs: dict[UUID, list[Run]] = {}
        self.facts = Facts()
        self.excess: list[Run] = []
        self.strikes = [Strike("fault", 100.0, 102.0, frozenset({PID}))]

    def job(
        self, due: float, *starts: float, kind: str = "storm.short", tenant: str = "alpha", pid: int = PID
    ) -> list[Run]:
        """A job whose runs but the last were lost."""
        job_id = uuid4()
        self.facts.jobs[job_id] = Fact(kind, due, False, "completed")
        some = [Run(job_id, kind, tenant, "storm.short", 1, 20, pid, start) for start in starts]
        self.runs[job_id] = some
        self.excess += some[:-1]
        return some

    def found(self) -> Recoveries:
        return recoveries(self.runs, self.strikes, self.facts, self.excess, LIMITED)["fault"]


@pytest.fixture
def case() -> Case:
    return Case()


def test_the_last_start_of_what_fell_due_meanwhile_counts(case: Case) -> None:
    case.job(100.5, 102.4)
    case.job(101.5, 103.5)
    case.job(101.9, 101.95)  # on time, somewhere else
    case.job(102.1, 109.0)  # due later: no debt of this fault
    assert case.found().alone == [pytest.approx(1.5)]


def test_who_held_up_nobody_has_recovered_at_once(case: Case) -> None:
    case.job(101.9, 101.95)
    assert case.found().alone == [0.0]


def test_a_lost_run_is_owed_until_the_next_begins(case: Case) -> None:
    case.job(99.0, 99.5, 108.0)
    assert case.found().alone == [pytest.approx(6.0)]


def test_a_lost_run_of_another_process_is_not_its_fault(case: Case) -> None:
    case.job(99.0, 99.5, 108.0, pid=OTHER)
    assert case.found().alone == [0.0]


@pytest.mark.parametrize("changes", [{"tenant": "beta"}, {"kind": "storm.newer"}])
def test_what_may_wait_for_something_else_does_not_count(case: Case, changes: dict[str, str]) -> None:
    case.job(101.0, 120.0, **changes)  # type: ignore[arg-type]
    case.job(99.0, 99.5, 120.0, **changes)  # type: ignore[arg-type]
    assert case.found().alone == [0.0]


def test_a_fault_before_all_was_paid_disturbs(case: Case) -> None:
    case.job(101.0, 105.0)
    case.strikes.append(Strike("another", 104.0, 104.0, None))
    assert case.found().alone == []
    assert case.found().disturbed == [pytest.approx(3.0)]
    case.strikes[-1] = Strike("another", 105.5, 105.5, None)
    assert case.found().alone == [pytest.approx(3.0)]


def test_those_that_were_alone_speak_for_their_kind() -> None:
    found = Recoveries(alone=[1.0, 2.0, 6.0], disturbed=[30.0])
    assert (found.strikes, found.median, found.most) == (4, 2.0, 6.0)
    assert (Recoveries(disturbed=[30.0]).median, Recoveries(disturbed=[30.0]).most) == (30.0, 30.0)


def test_throughput_must_come_back() -> None:
    assert slower(20.0, 19.0) == []
    assert slower(20.0, 18.9) == ["18.9 jobs/s after the storm, 20.0 before: less than 0.95 of it"]
