"""`make demo`: the story itself, small; and the judgement, which must see what the ledger lacks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest

from scheduler_project.scratch import new_name, scratch
from tests.demo.environment import DATABASES
from tests.demo.judge import Noted, Scheduler, Slot, Verdict, judge
from tests.demo.ledger import END, ERROR, START, Ledger, Line, write
from tests.demo.report import table
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
DUE = datetime(2030, 1, 1, 12, tzinfo=UTC)
SLOT = Slot("demo.digest", DUE)


class Case:
    """Three jobs, the last of them poison, and one cron slot; everything went well."""

    def __init__(self) -> None:
        self.noted = [Noted(uuid4(), DUE, DUE - timedelta(seconds=9)) for _ in range(3)]
        self.first, self.second, self.poison = (job.job_id for job in self.noted)
        self.lines = [
            *self.run(self.first),
            *self.run(self.second),
            *self.run(uuid4(), job_type=SLOT.job_type),
        ]
        self.lines += [self.line(self.poison, START, pid) for pid in (1, 2, 3)]
        self.scheduler = Scheduler(failed=frozenset({self.poison}), clean=True)

    def line(self, job_id: UUID, event: str, pid: int = 7, job_type: str = "email.send") -> Line:
        return Line(job_id, 1, event, pid, DUE.timestamp() + 0.5, job_type, DUE)

    def run(self, job_id: UUID, event: str = END, pid: int = 7, job_type: str = "email.send") -> list[Line]:
        return [self.line(job_id, START, pid, job_type), self.line(job_id, event, pid, job_type)]

    def judge(self) -> Verdict:
        return judge(self.noted, [SLOT], self.poison, self.lines, self.scheduler)


@pytest.fixture
def case() -> Case:
    return Case()


def test_all_went_well(case: Case) -> None:
    verdict = case.judge()
    assert (verdict.exit_code, verdict.complaints) == (0, [])
    assert (verdict.scheduled, verdict.completed, verdict.failed, verdict.slots_fired) == (3, 2, 1, 1)
    assert verdict.lateness == pytest.approx([0.5, 0.5, 0.5])
    assert table(verdict, checkjobs="clean").endswith("\nlost 0")


def test_a_job_without_a_run_in_the_ledger_is_lost_whatever_the_scheduler_says(case: Case) -> None:
    case.lines = [line for line in case.lines if line.job_id != case.first]
    verdict = case.judge()
    assert verdict.exit_code == 1
    assert verdict.lost == [str(case.first)]
    assert table(verdict, checkjobs="clean").endswith("\nlost 1")


@pytest.mark.parametrize("event", [START, ERROR])
def test_a_run_that_did_not_finish_does_not_count(case: Case, event: str) -> None:
    case.lines = [line for line in case.lines if line.job_id != case.first] + case.run(case.first, event)
    assert case.judge().lost == [str(case.first)]
    assert case.judge().exit_code == 1


def test_a_cron_slot_that_did_not_fire_is_lost(case: Case) -> None:
    case.lines = [line for line in case.lines if line.job_type != SLOT.job_type]
    assert case.judge().lost == ["demo.digest of 12:00"]
    assert case.judge().exit_code == 1


def test_retried_and_run_again_are_told_apart(case: Case) -> None:
    case.lines += case.run(case.first, ERROR, pid=8)
    case.lines += [case.line(case.second, START, pid=9)]
    verdict = case.judge()
    assert (verdict.retried, verdict.run_again, verdict.finished_twice) == (1, 1, 0)
    case.lines += case.run(case.second, pid=10)
    assert case.judge().finished_twice == 1
    assert case.judge().exit_code == 0


def test_another_failed_job_or_a_breach_is_an_error(case: Case) -> None:
    case.scheduler = Scheduler(failed=frozenset({case.poison, case.first}), clean=True)
    assert case.judge().exit_code == 1
    case.scheduler = Scheduler(failed=frozenset(), clean=True)
    assert case.judge().exit_code == 1
    case.scheduler = Scheduler(failed=frozenset({case.poison}), clean=False)
    assert case.judge().exit_code == 1


def test_the_poison_job_must_not_finish(case: Case) -> None:
    case.lines.append(case.line(case.poison, END, 3))
    assert case.judge().exit_code == 1


def test_the_ledger_gives_back_what_was_written(case: Case, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    assert ledger.read() == []
    for line in case.lines:
        write(ledger.file, line)
        assert ledger.read()[-1] == line
    with ledger.file.open("ab") as file:
        file.write(b"half a li")
    assert ledger.read() == case.lines
    assert Ledger(ledger.file).read() == case.lines
    assert replace(case.lines[0], attempt=2).run != case.lines[0].run


class Demo:
    """One run, with all that is its own under a folder of the test's."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.mark = f"DEMO_LEDGER={folder}".encode()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.demo", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(folder), "SCHEDULER_LEASE": "not for the demo"},
        )
        self.said = ""

    def read_until(self, word: str) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.said += line
            if word in line:
                return
        raise AssertionError(f"it never said {word!r}: {self.said}")

    def end(self) -> int:
        self.said += self.process.communicate()[0]
        return self.process.returncode

    def processes(self) -> list[str]:
        """Command lines of what runs on behalf of it."""
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and self.mark in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
        return found


def databases() -> set[str]:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        rows = connection.execute(
            "SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [DATABASES]
        )
        return {name for (name,) in rows}


@pytest.mark.process
@pytest.mark.timeout(300)
def test_a_small_demo(tmp_path: Path) -> None:
    before = databases()
    demo = Demo(tmp_path, "--jobs", "300", "--seconds", "4")
    assert demo.end() == 0, demo.said
    assert "\nlost 0\n" in demo.said
    assert demo.processes() == []
    assert databases() <= before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.process
@pytest.mark.timeout(300)
def test_an_interrupted_demo_leaves_nothing(tmp_path: Path) -> None:
    before = databases()
    demo = Demo(tmp_path, "--jobs", "300", "--seconds", "60")
    demo.read_until("finished")
    assert len(demo.processes()) >= 5
    demo.process.send_signal(signal.SIGINT)
    assert demo.end() == 130, demo.said
    assert demo.said.endswith("stopped\n")
    assert demo.processes() == []
    assert databases() <= before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.process
@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's parent-death signal")
def test_a_killed_demo_leaves_no_process_and_the_next_drops_its_database(tmp_path: Path) -> None:
    before = databases()
    demo = Demo(tmp_path, "--jobs", "300", "--seconds", "60")
    demo.read_until("finished")
    (left,) = databases() - before
    demo.process.kill()
    assert demo.end() == -signal.SIGKILL
    wait_until(lambda: not demo.processes(), what="its processes to leave")
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        home = connection.info.dbname
        connection.execute("SELECT pg_advisory_lock(hashtext(%s))", [left])
        with scratch(new_name(DATABASES), home, sweep=DATABASES):
            assert left in databases(), "somebody uses it"
    with scratch(name := new_name(DATABASES), home, sweep=DATABASES):
        assert left not in databases()
        assert name in databases()
    assert name not in databases()
