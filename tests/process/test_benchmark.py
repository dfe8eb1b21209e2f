"""`manage.py benchmark` as a user runs it, small; and its judgement, which must see what the ledger lacks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from scheduler_project.benchmark.database import PREFIX
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
KEYS = {"workload", "parameters", "figures", "floors", "ratio", "reach", "met"}
COSTS = {"server_cpu_us_per_job", "python_cpu_us_per_job", "wal_bytes_per_job", "commits_per_job"}

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


class Benchmark:
    """One run, with all that is its own under a folder of the test's; the user's own settings must not reach it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.mark = str(folder).encode()
        self.file = folder.with_suffix(".json")
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "benchmark", *arguments, "--json", str(self.file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(folder), "SCHEDULER_PROCESSES": "1", "SCHEDULER_LEASE": "7"},
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

    def found(self) -> dict[str, Any]:
        assert self.end() == 0, self.said
        found: dict[str, Any] = json.loads(self.file.read_text())
        return found

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
        rows = connection.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [PREFIX])
        return {name for (name,) in rows}


def check_nothing_is_left(benchmark: Benchmark, before: set[str], folder: Path) -> None:
    assert databases() <= before
    assert benchmark.processes() == []
    assert list(folder.iterdir()) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


def test_a_burst(folder: Path) -> None:
    before = databases()
    benchmark = Benchmark(folder, "burst", "--jobs", "500")
    found = benchmark.found()
    assert set(found) == KEYS | {"early", "lost"}
    assert (found["workload"], found["early"], found["lost"], found["figures"]["twice"]) == ("burst", 0, 0, 0)
    assert (found["parameters"]["jobs"], found["parameters"]["worker_processes"]) == (500, 2)
    assert set(found["figures"]) >= COSTS
    assert set(found["ratio"]) == set(found["reach"]) == {"jobs_per_second", "first_start_ms"}
    assert set(found["parameters"]["server"]) >= {"synchronous_commit", "fsync", "full_page_writes"}
    assert "SKIP LOCKED" in found["floors"]["delete_loop"]["sql"][-1]
    assert f"met {'yes' if found['met'] else 'no'}" in benchmark.said
    check_nothing_is_left(benchmark, before, folder)


def test_scheduling_alone(folder: Path) -> None:
    found = Benchmark(folder, "schedule", "--jobs", "300").found()
    assert set(found) == KEYS  # no job runs
    assert set(found["ratio"]) == {"bulk_per_second", "single_p50_ms"}
    assert found["figures"]["single_commits_per_job"] == pytest.approx(1, abs=0.1)


def test_precision(folder: Path) -> None:
    found = Benchmark(folder, "precision", "--jobs", "20").found()
    assert (found["early"], found["lost"]) == (0, 0)
    assert set(found["ratio"]) == {"lateness_p50_ms", "lateness_p99_ms"}
    assert 0 < found["figures"]["lateness_p50_ms"] <= found["figures"]["lateness_max_ms"]


def test_cron_definitions_that_fire_at_one_minute(folder: Path) -> None:
    found = Benchmark(folder, "cron", "--jobs", "200").found()
    assert set(found) == KEYS | {"early", "lost"}
    assert (found["early"], found["lost"], found["figures"]["twice"]) == (0, 0, 0)
    assert set(found["figures"]) >= COSTS | {"server_cpu_us_per_definition", "python_cpu_us_per_definition"}
    assert set(found["ratio"]) == {"written_s", "lateness_p99_s", "pass_ms"}
    asked = found["parameters"]
    assert (asked["jobs"], asked["different_rules"], asked["few"], asked["many"]) == (200, 40, 2, 2000)
    assert 0 < found["ratio"]["written_s"] <= 1, "all jobs exist before the minute begins"


def test_a_slow_neighbour(folder: Path) -> None:
    """Also a check of the runs' own ledger: the noisy tenant's jobs were on some of the threads."""
    found = Benchmark(folder, "slow", "--jobs", "40").found()
    assert (found["early"], found["lost"]) == (0, 0)
    assert set(found["ratio"]) == {"noisy_share", "quiet_lateness_p99_ms"}
    assert 0 < found["figures"]["noisy_share"] <= 0.75


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_that_is_asked_to_stop_leaves_nothing(folder: Path, number: signal.Signals) -> None:
    before = databases()
    benchmark = Benchmark(folder, "burst", "--jobs", "500")
    benchmark.read_until("due in")
    assert len(benchmark.processes()) >= 5
    benchmark.process.send_signal(number)
    assert benchmark.end() == 130, benchmark.said
    assert benchmark.said.endswith("stopped\n")
    check_nothing_is_left(benchmark, before, folder)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's parent-death signal")
def test_one_that_is_killed_leaves_no_process(folder: Path) -> None:
    before = databases()
    benchmark = Benchmark(folder, "burst", "--jobs", "500")
    benchmark.read_until("due in")
    benchmark.process.kill()
    assert benchmark.end() == -signal.SIGKILL
    wait_until(lambda: not benchmark.processes(), what="its processes to leave")
    (left,) = databases() - before
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{left}" WITH (FORCE)')
