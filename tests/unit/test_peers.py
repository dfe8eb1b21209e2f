"""The arithmetic of the side-by-side with other schedulers."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.bench.peers import install, session
from tests.bench.peers.adapters import record
from tests.bench.peers.adapters.order import CALL, Order
from tests.bench.peers.catalogue import OURS, PEERS
from tests.bench.peers.comparison import RATIOS, Comparison
from tests.bench.peers.machine import code, sentence
from tests.bench.peers.peer import Home, PeerFailed
from tests.bench.peers.records import Records, Run, judge
from tests.bench.peers.server import Server
from tests.bench.peers.tables import tables
from tests.bench.peers.workloads import WORKLOADS


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Records]:
    monkeypatch.setenv(record.VARIABLE, str(tmp_path / "records"))
    record._file.cache_clear()
    yield Records(tmp_path / "records")
    record._file.cache_clear()


def test_what_bodies_write_is_read_back(records: Records) -> None:
    assert (records.count(), records.read()) == (0, [])
    before = time.time()
    record.record(3, 1700000000.125, "text")
    record.record(-1, 5.0, "text")
    assert records.count() == 2
    first, second = records.read()
    assert (first.number, first.due, second.number) == (3, 1700000000.125, -1)
    assert before <= first.start <= second.start <= time.time()


@pytest.mark.bench  # needs Node, as its peers do
def test_a_body_in_node_writes_the_same_record(records: Records) -> None:
    code = "import(process.argv[1]).then(({ record }) => record({ number: -7, due: 1700000000.125 }))"
    before = time.time()
    subprocess.run(["node", "-e", code, str(install.HERE / "node" / "record.mjs")], check=True)
    (run,) = records.read()
    assert (run.number, run.due) == (-7, 1700000000.125)
    assert before - 0.1 < run.start < time.time() + 0.1


def test_the_first_start_of_each_job_counts() -> None:
    runs = [
        Run(1, 10.0, 10.5),
        Run(0, 10.0, 9.75),
        Run(1, 10.0, 10.25),
        Run(-1, 0.0, 9.0),
        Run(3, 10.0, 12.0),
    ]
    starts = judge(runs, range(5))
    assert starts.lateness == [-0.25, 0.25, 2.0]
    assert (starts.lost, starts.twice, starts.early) == (2, 1, 1)


def test_an_order_is_given_call_by_call_and_only_the_calls_are_timed() -> None:
    order = Order(bulk=True, first=7, dues=[1700000000.125] * (CALL + 1))
    calls = []
    for jobs in order.calls():
        calls.append(jobs)
        time.sleep(0.01)
    assert [len(jobs) for jobs in calls] == [CALL, 1]
    assert [job["number"] for jobs in calls for job in jobs] == list(range(7, CALL + 8))
    assert 95 <= len(json.dumps(calls[1][0])) <= 105
    assert 0.02 <= order.result()["seconds"] < 1
    assert 10 <= order.result()["p50_ms"] < 500
    assert [len(jobs) for jobs in Order(bulk=False, first=0, dues=[1.0, 2.0]).calls()] == [1, 1]


def found(**rates: list[float]) -> Comparison:
    comparison = Comparison()
    for peer, values in rates.items():
        for value in values:
            comparison.add("burst", peer, {"jobs_per_second": value, "early": 0, "twice": value > 200})
    return comparison


def test_figures_are_medians_of_the_rounds_and_faults_are_never_averaged_away() -> None:
    assert found(punctual=[100, 900, 110]).medians("burst", OURS) == {
        "jobs_per_second": 110,
        "early": 0,
        "twice": 1,
    }
    assert found().medians("burst", OURS) == {}


def test_ratios_are_ours_to_theirs() -> None:
    comparison = found(punctual=[220], graphile=[200], celery=[0.0])
    assert comparison.ratio("burst", "graphile", "jobs_per_second") == 1.1
    assert comparison.ratio("burst", "celery", "jobs_per_second") is None
    assert comparison.ratio("burst", "pgqueuer", "jobs_per_second") is None


def test_an_aim_is_met_at_its_reach_and_never_by_what_was_not_measured() -> None:
    aims = {
        aim.against: aim.reach for aim in found(punctual=[220], graphile=[200], pgqueuer=[74]).aims(["burst"])
    }
    assert {against: reach.met for against, reach in aims.items()} == {
        "graphile": True,
        "pgqueuer": False,
        "djangotasks": False,
        "procrastinate": False,
    }
    assert aims["djangotasks"].ratio is None


def test_precision_is_held_against_the_best_on_postgresql_and_against_celery() -> None:
    comparison = Comparison()
    for peer, late in {OURS: 10.0, "pgqueuer": 100.0, "graphile": 50.0, "celery": 5.0}.items():
        comparison.add("precision", peer, {"lateness_p99_ms": late})
    assert comparison.best("precision", "lateness_p99_ms") == "graphile"
    assert [(aim.reach.ratio, aim.reach.met) for aim in comparison.aims(["precision"])] == [
        (0.2, True),
        (2.0, False),
    ]
    assert Comparison().best("precision", "lateness_p99_ms") is None


def test_the_tables_show_what_is_missing_and_who_was_early() -> None:
    comparison = found(punctual=[22_000.0], graphile=[20_000.0])
    comparison.add("burst", "graphile", {"jobs_per_second": 20_000.0, "early": 3, "twice": 0})
    comparison.add("burst", "graphile", {"jobs_per_second": 24_000.0, "early": 0, "twice": 0})
    lines = list(tables(comparison, ["burst"], [OURS, "graphile", "pgboss"], 1000))
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[2] == ["django-punctual", "1,000", "22,000", ""]
    assert cells[3][1:] == ["1,000", "20,000 (20,000 to 24,000)", "1.1"]
    assert cells[4][2:] == ["not measured", "not measured"]
    assert "Started before they were due: jobs of graphile." in lines
    assert ["burst", "jobs/s", "graphile", "1.1", ">= 1.1", "yes"] in cells
    assert len({len(line) for line in lines[:5]}) == 1


def test_the_machine_is_named() -> None:
    server = {"server_version": "18.6 (Debian)", "fsync": "on"}
    machine = {"cores": 2, "cpu": "A CPU", "python": "3.11.7", "node": "24.1.0", "server": server}
    assert sentence(machine, 3) == (
        "2 cores of A CPU; PostgreSQL 18.6 (fsync on), Python 3.11.7, Node 24.1.0; medians of 3 rounds."
    )


@pytest.mark.parametrize(("codes", "changed"), [(["a", "a"], False), (["a", "b"], True), ([], False)])
def test_an_edit_of_our_code_between_its_runs_is_noticed(codes: list[str], changed: bool) -> None:
    made = session.Session(Server("", "", False), [OURS], ["burst"], 1000, 2, print)
    made.runs = [{"peer": "graphile"}, *({"peer": OURS, "code": each} for each in codes)]
    assert made.changed is changed
    assert code() == code()


def test_a_run_that_fails_is_noted_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def stage(server: Server, peer: Any) -> Iterator[str]:
        if peer.name == "graphile":
            raise PeerFailed("it did not start")
        yield peer.name

    turns, said = [], list[str]()

    def run(stage: Any, jobs: int, random: random.Random) -> dict[str, float]:
        turns.append((stage, jobs))
        return {"jobs_per_second": 5.0}

    monkeypatch.setattr(session, "stage", stage)
    monkeypatch.setattr(session, "WORKLOADS", {"burst": run})
    names = [OURS, "graphile", "procrastinate"]
    made = session.Session(Server("", "", False), names, ["burst"], 1000, 2, said.append)
    made.run()
    assert turns == [(OURS, 1000), ("procrastinate", 100), ("procrastinate", 100), (OURS, 1000)]
    assert made.failed
    assert [run["peer"] for run in made.runs if "failed" in run] == ["graphile"] * 2
    assert "2/2 burst graphile FAILED: it did not start" in said
    assert made.found.medians("burst", OURS) == {"jobs_per_second": 5.0}


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
def test_every_peer_has_an_adapter_and_a_pinned_version(peer: Any) -> None:
    folder, suffix = ("node", "mjs") if peer.home is Home.NODE else ("adapters", "py")
    assert (install.HERE / folder / f"{peer.name}.{suffix}").exists()
    assert install.version(peer) != "unknown"
    assert peer.count(1) == 1
    assert peer.count(20_000) == 20_000 * peer.share


def test_every_workload_has_figures_to_compare() -> None:
    assert set(RATIOS) == set(WORKLOADS)
