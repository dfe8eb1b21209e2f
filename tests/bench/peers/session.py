"""All runs, round after round."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import psycopg

from jobs.errors import SchedulerError
from tests.bench.peers import install
from tests.bench.peers.catalogue import OURS, PEERS
from tests.bench.peers.comparison import RATIOS, Comparison
from tests.bench.peers.machine import code, describe
from tests.bench.peers.server import Server
from tests.bench.peers.stage import stage
from tests.bench.peers.workloads import WORKLOADS


@dataclass
class Session:
    server: Server
    peers: Sequence[str]
    workloads: Sequence[str]
    jobs: int
    repeat: int
    say: Callable[[str], None]
    found: Comparison = field(default_factory=Comparison)
    runs: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> None:
        """In each round every peer has its turn, so that what else the machine does in the meantime hits all of them;
        every other round goes backwards."""
        for number in range(self.repeat):
            for workload in self.workloads:
                for peer in self.peers if number % 2 == 0 else reversed(self.peers):
                    self._run(number, workload, peer)

    def _run(self, number: int, workload: str, name: str) -> None:
        peer = PEERS[name]
        said = {"round": number + 1, "workload": workload, "peer": name}
        if name == OURS:
            said["code"] = code()
        try:
            with stage(self.server, peer) as ready:
                figures = WORKLOADS[workload](ready, peer.count(self.jobs), random.Random(number))
        except (SchedulerError, psycopg.Error) as error:
            self.runs.append({**said, "failed": str(error)})
            self.say(f"{number + 1}/{self.repeat} {workload} {name} FAILED: {error}")
            return
        self.found.add(workload, name, figures)
        self.runs.append({**said, "figures": {key: round(value, 3) for key, value in figures.items()}})
        told = ", ".join(f"{key} {figures[key]:,.1f}" for key in RATIOS[workload])
        self.say(f"{number + 1}/{self.repeat} {workload} {name}: {told}")

    @property
    def failed(self) -> bool:
        return any("failed" in run for run in self.runs)

    @property
    def changed(self) -> bool:
        """Whether our own code was edited between its runs: then its figures are of no version of it."""
        return len({run["code"] for run in self.runs if "code" in run}) > 1

    def machine(self) -> dict[str, Any]:
        return describe(self.server, [PEERS[name] for name in self.peers])

    def as_json(self) -> dict[str, Any]:
        pairs = [(workload, peer) for workload in self.workloads for peer in self.peers]
        aims = self.found.aims(self.workloads)
        return {
            "machine": self.machine(),
            "parameters": {"jobs": self.jobs, "repeat": self.repeat, "payload_bytes": 100},
            "peers": {name: self._peer(name) for name in self.peers},
            "medians": {f"{workload} {peer}": self.found.medians(workload, peer) for workload, peer in pairs},
            "ratios": {
                f"{workload} {peer}": {
                    name: self.found.ratio(workload, peer, name) for name in RATIOS[workload]
                }
                for workload, peer in pairs
                if peer != OURS
            },
            "aims": [aim.as_json() for aim in aims],
            "changed": self.changed,
            "met": all(aim.reach.met for aim in aims),
            "runs": self.runs,
        }

    def _peer(self, name: str) -> dict[str, Any]:
        peer = PEERS[name]
        return {
            "title": peer.title,
            "version": install.version(peer),
            "jobs": peer.count(self.jobs),
            "analyzed": peer.analyze,
            "burst": asdict(peer.burst),
            "precision": asdict(peer.precision),
        }
