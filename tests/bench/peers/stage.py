"""One peer, ready for one run: its store, its records, its processes."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from scheduler_project.children import ROOT
from tests.bench.peers import programs
from tests.bench.peers.adapters.record import VARIABLE
from tests.bench.peers.peer import Peer, PeerFailed, Setting
from tests.bench.peers.programs import Crew
from tests.bench.peers.records import Records, Starts, judge
from tests.bench.peers.redis import Redis, redis
from tests.bench.peers.server import Database, Server, database

WARM_UP = range(-20, 0)
"""Jobs that the workers run before anything is measured."""
IDLE = 1.5
"""Seconds that they then have nothing to do."""
STARTING = 60.0
PATIENCE = 5.0
LOOK = 0.005
LONGEST = 300.0
"""Seconds that preparing or scheduling may take."""


@dataclass(frozen=True)
class Scheduled:
    seconds: float
    p50_ms: float
    """Of a call."""
    ended: float


@dataclass
class Stage:
    peer: Peer
    store: Database | Redis
    folder: Path
    records: Records
    env: dict[str, str]

    def prepare(self) -> None:
        self._adapter("prepare")
        self.store.checkpoint()

    def schedule(self, dues: list[float], *, bulk: bool, first: int = 0) -> Scheduled:
        said = self._adapter("schedule", json.dumps({"bulk": bulk, "first": first, "dues": dues}))
        return Scheduled(**json.loads(said.splitlines()[-1]))

    @contextmanager
    def workers(self, setting: Setting) -> Iterator[Crew]:
        """They have run a few jobs and are idle when the block begins, and are gone after it."""
        crew = Crew(self.folder / "log", self.env)
        try:
            for name, program in programs.workers(self.peer, setting):
                crew.start(name, program)
            self.schedule([time.time()] * len(WARM_UP), bulk=False, first=WARM_UP.start)
            self.wait(crew, 0, time.time() + STARTING)
            time.sleep(IDLE)
            yield crew
        finally:
            crew.stop(PATIENCE)

    def wait(self, crew: Crew, jobs: int, until: float) -> float:
        """Until the bodies of all these and the warm-up have started and the store has no unfinished job; returns when
        that was."""
        wanted, told = len(WARM_UP) + jobs, time.time()
        while self.records.count() < wanted or not self.store.is_done():
            if time.time() > told + 1:
                told = time.time()
                crew.check()
            if told > until:
                there = self.records.count() - len(WARM_UP)
                raise PeerFailed(f"{max(0, there):,} of {jobs:,} jobs had run when time was up{crew.said()}")
            time.sleep(LOOK)
        return time.time()

    def judge(self, jobs: int) -> Starts:
        starts = judge(self.records.read(), range(jobs))
        if starts.lost:
            raise PeerFailed(f"{starts.lost:,} of {jobs:,} jobs never ran")
        return starts

    def _adapter(self, verb: str, order: str = "") -> str:
        command = programs.adapter(self.peer, verb, {})
        try:
            done = subprocess.run(
                command, input=order, capture_output=True, text=True, env=self.env, cwd=ROOT, timeout=LONGEST
            )
        except subprocess.TimeoutExpired as error:
            raise PeerFailed(f"{verb} had not ended after {LONGEST:.0f} s") from error
        if done.returncode:
            raise PeerFailed(f"{verb} ended with exit code {done.returncode}:\n{done.stderr.strip()[-1500:]}")
        return done.stdout


@contextmanager
def stage(server: Server, peer: Peer) -> Iterator[Stage]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="punctual-peers-")))
        store = stack.enter_context(_store(server, peer, folder))
        records = Records(folder / "records")
        inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        env = {**inherited, **programs.ENV, **store.env, VARIABLE: str(records.file)}
        ready = Stage(peer, store, folder, records, env)
        ready.prepare()
        yield ready


def _store(server: Server, peer: Peer, folder: Path) -> AbstractContextManager[Database | Redis]:
    return redis(folder) if peer.on_redis else database(server, peer)
