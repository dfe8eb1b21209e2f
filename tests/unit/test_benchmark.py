"""The benchmark's instruments: each must see what it is there for."""

from __future__ import annotations

import os
import subprocess
import sys
from mmap import mmap
from pathlib import Path

import pytest

from scheduler_project.benchmark import apps
from scheduler_project.benchmark.ledger import MOST, Ledger
from scheduler_project.benchmark.management.commands.benchmark import NAMES
from scheduler_project.benchmark.meter import NOTHING, Reading, tree_cpu, tree_memory
from scheduler_project.benchmark.report import Report, at_least, at_most, summary
from scheduler_project.benchmark.runs import Run, Runs, busy, most_at_once, read_runs
from scheduler_project.benchmark.timing import growth, ms, ratio, share


def test_the_ledger_is_shared_and_keeps_the_first_start(tmp_path: Path) -> None:
    ours = Ledger.create(tmp_path / "ledger", 1000)
    theirs = Ledger(tmp_path / "ledger")
    assert ours.left(range(10, 20)) == 10
    theirs.note(12)
    first = ours.start(12)
    theirs.note(12)
    assert first > 0
    assert (ours.start(12), ours.count(12), ours.left(range(10, 20))) == (first, 2, 9)
    assert (ours.start(13), ours.count(13)) == (0, 0)
    for _ in range(MOST):
        ours.note(13)
    ours.note(13)
    assert theirs.count(13) == MOST


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_cpu_of_a_tree_counts_children_that_have_ended() -> None:
    before = tree_cpu([os.getpid()])
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", busy], check=True)
    after = tree_cpu([os.getpid()])
    assert before is not None
    assert after is not None
    assert 0.28 <= after - before < 5  # in ticks of 10 ms
    assert tree_cpu([]) == 0


def test_a_difference_of_readings_is_what_jobs_cost() -> None:
    spent = Reading(3.0, 2.0, 5000, 30) - Reading(1.0, 1.0, 1000, 10)
    assert (spent + NOTHING).per_job(1000) == {
        "server_cpu_us_per_job": 2000,
        "python_cpu_us_per_job": 1000,
        "wal_bytes_per_job": 4,
        "commits_per_job": 0.02,
    }
    unseen = Reading(None, 2.0, 5000, 30) - Reading(None, 1.0, 1000, 10)
    assert unseen.per_job(1000)["server_cpu_us_per_job"] is None


def report(**verdict: int) -> Report:
    return Report(
        workload="burst",
        parameters={},
        figures={"rate": 21_000.0, "first_ms": None},
        floors={"loop": {"value": 100_000.0, "unit": "rows per second", "sql": []}},
        reaches={"rate": at_least(0.2, 0.21), "first_ms": at_most(60, 60.0)},
        verdict=verdict,
    )


def test_a_reach_is_met_at_its_bound_and_never_by_what_was_not_measured() -> None:
    assert report().met
    assert not at_least(0.2, 0.19).met
    assert not at_most(60, 60.1).met
    assert not at_most(60, None).met


def test_a_lost_or_early_job_makes_a_report_unsound_a_missed_reach_does_not() -> None:
    assert report(early=0, lost=0, twice=0).is_sound
    assert not report(early=1, lost=0, twice=0).is_sound
    assert not report(early=0, lost=1, twice=0).is_sound
    missed = report(early=0, lost=0, twice=0)
    missed.reaches = {"rate": at_least(0.2, 0.1)}
    assert missed.is_sound
    assert "met no" in missed.lines()[0]
    assert summary([missed])[-1].split() == ["burst", "rate", "21,000", "0.1", ">=", "0.2", "no"]


def test_the_json_has_early_and_lost_only_where_jobs_run() -> None:
    assert set(report().as_json()) == {
        "workload",
        "parameters",
        "figures",
        "floors",
        "ratio",
        "reach",
        "met",
    }
    found = report(early=0, lost=2, twice=1).as_json()
    assert (found["early"], found["lost"], found["figures"]["twice"]) == (0, 2, 1)
    assert found["reach"] == {"rate": ">= 0.2", "first_ms": "<= 60"}


def test_shares_of_ordered_times() -> None:
    times = [float(n) for n in range(100)]
    assert [share(times, part) for part in (0, 0.5, 0.99, 1)] == [0, 50, 99, 99]
    assert share([], 0.5) is None
    assert (ms(0.0123456), ms(None)) == (12.346, None)
    assert (ratio(1.0, 2.0), ratio(1.0, 0.0), ratio(None, 2.0)) == (0.5, None, None)


def test_the_command_offers_every_workload() -> None:
    files = Path(apps.__file__).with_name("workloads").glob("[a-z]*.py")
    assert {file.stem for file in files} == set(NAMES)


def test_its_handlers_are_not_registered_in_ordinary_processes() -> None:
    code = (
        "import django; django.setup(); from jobs.registry import registry; "
        "assert not [name for name in registry.names() if name.startswith('benchmark.')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(apps.__file__).parents[2])


def test_runs_are_read_back_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    assert read_runs(tmp_path / "runs", range(9)) == []
    for each in (Run(2, 5.0, 6.0), Run(1, 3.0, 9.0), Run(20, 1.0, 2.0)):
        Runs(tmp_path / "runs").note(*each)
    assert read_runs(tmp_path / "runs", range(9)) == [Run(1, 3.0, 9.0), Run(2, 5.0, 6.0)]


def test_what_ran_at_the_same_time_is_seen() -> None:
    some = [Run(1, 0.0, 2.0), Run(2, 1.0, 3.0), Run(3, 2.0, 4.0), Run(4, 2.5, 2.75)]
    assert most_at_once(some) == 3
    assert most_at_once(some[:1] + some[2:3]) == 1, "one that begins as another ends is not beside it"
    assert most_at_once([]) == 0
    assert busy(some, 1.0, 2.5) == 1.0 + 1.5 + 0.5
    assert busy(some, 9.0, 10.0) == 0


def test_me_01_one_process_that_grows_is_seen_beside_many_that_do_not() -> None:
    steady = dict.fromkeys(range(1, 9), 100.0)
    sizes = [{**steady, 9: 50.0 + 5 * n} for n in range(9)]
    assert growth(sizes) == (70 / 55, 85 / 55)
    assert growth([steady, {}]) == (None, None)


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_memory_is_what_a_process_shares_with_nobody(tmp_path: Path) -> None:
    """The ledger of a benchmark grows with its jobs, in the memory of all who write it."""
    size = 64 * 2**20
    with (tmp_path / "ledger").open("w+b") as file:
        file.truncate(size)
        before = tree_memory([os.getpid()])[os.getpid()]
        with mmap(file.fileno(), size) as shared:
            shared[:] = b"x" * size
            assert tree_memory([os.getpid()])[os.getpid()] - before < size / 2
    own = bytearray(b"x" * size)
    assert tree_memory([os.getpid()])[os.getpid()] - before > size / 2
    assert len(own) == size
