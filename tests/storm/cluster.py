"""The cluster under the storm: PostgreSQL, PgBouncer, a link for each process, and the fleet."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import psycopg

from jobs.clock import boottime
from jobs.errors import SchedulerError
from scheduler_project.children import ROOT
from tests.storm import clock
from tests.storm.environment import DISPATCHERS, NEW, WORKERS, Addresses
from tests.storm.fleet import Fleet, Member
from tests.storm.ledger import START, VARIABLE, Ledger, Line
from tests.storm.pooler import Pooler
from tests.storm.proxy import Link, Proxy
from tests.storm.server import Server

POOLED = ("dispatcher 1", "worker 1", "worker 2", "web 1")
"""Whose statements go through PgBouncer."""
WRONG_CLOCKS = ("dispatcher 3", "worker 4")
"""Whose wall clock can be set."""
NEVER_OLD = "worker 4"
"""It has the new code from the start, so that its types have a worker."""
TURN = 0.1
STARTING = 90.0
"""Seconds that all have to reach their loops."""


class CutShort(SchedulerError):
    """The storm cannot go on, or somebody asked it to stop."""


class Cluster:
    def __init__(self, folder: Path, stop: threading.Event) -> None:
        self.folder, self._stop = folder, stop
        self.server = Server(folder / "pg")
        self.pooler = Pooler(self.server)
        self.proxy = Proxy()
        self.fleet = Fleet()
        self.ledger = Ledger(folder / "ledger")
        self.web_port = 0
        self._clock_library = clock.build(folder)

    def start_server(self) -> None:
        self.server.start()
        self.pooler.start()

    def addresses(self, name: str, *, pooled: bool) -> Addresses:
        direct = _url(self.proxy.add(f"{name}:direct", self.server.socket))
        return Addresses(
            direct, _url(self.proxy.add(f"{name}:pooled", self.pooler.socket)) if pooled else None
        )

    def start_fleet(self) -> None:
        manage = str(ROOT / "manage.py")
        for number in range(1, DISPATCHERS + 1):
            self._add(f"dispatcher {number}", [manage, "rundispatcher"])
        for number in range(1, WORKERS + 1):
            self._add(f"worker {number}", [manage, "runworker"])
        self.web_port = _free_port()
        config = str(ROOT / "scheduler_project" / "gunicorn.conf.py")
        self._add("web 1", ["-m", "gunicorn", "--chdir", str(ROOT), "-c", config])
        for member in self.fleet.members:
            member.start()
        until = boottime() + STARTING
        while not all(member.ready for member in [*self.fleet.of("worker"), *self.fleet.of("dispatcher")]):
            self.wait(TURN)
            if boottime() > until:
                raise CutShort(f"the processes did not start within {STARTING:.0f} s")

    def _add(self, name: str, command: list[str]) -> None:
        env = self.addresses(name, pooled=name in POOLED).variables
        env[VARIABLE] = str(self.ledger.file)
        if name == "web 1":
            env["WEB_BIND"] = f"127.0.0.1:{self.web_port}"
        member = Member(name, command, env, self.folder / f"{name.replace(' ', '-')}.log")
        if name in WRONG_CLOCKS:
            member.clock = clock.Clock(self.folder / f"{name.replace(' ', '-')}.clock")
            env.update(member.clock.variables(self._clock_library))
        if name == NEVER_OLD:
            member.version = NEW
        self.fleet.members.append(member)

    # while the storm goes on

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Let time pass, start anew what ended; True as soon as `until` is so. CutShort when asked to stop."""
        end = boottime() + seconds
        while not until():
            if self._stop.is_set():
                raise CutShort("somebody asked the storm to stop")
            self.fleet.tend()
            if boottime() > end:
                return False
            time.sleep(TURN)
        return True

    def running(self) -> list[Line]:
        """The starts of runs that are not known to have ended."""
        lines = self.ledger.read()
        over = {(line.job_id, line.attempt, line.pid) for line in lines if line.event != START}
        since = boottime() - 60
        return [
            line
            for line in lines
            if line.event == START and line.at > since and (line.job_id, line.attempt, line.pid) not in over
        ]

    def busy_worker(self, chance: Random) -> Member:
        """One that is in the middle of something."""

        def busy() -> list[Member]:
            pids = {line.pid for line in self.running()}
            return [member for member in self.fleet.of("worker") if member.ready and member.pids & pids]

        self.wait(20, lambda: bool(busy()))
        return chance.choice(busy() or self.fleet.of("worker"))

    def ready(self, kind: str, chance: Random) -> Member:
        """One that has reached its loop."""
        self.wait(60, lambda: any(member.ready for member in self.fleet.of(kind)))
        return chance.choice([m for m in self.fleet.of(kind) if m.ready] or self.fleet.of(kind))

    def manage(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A command of an administrator."""
        with (self.folder / "manage.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "manage.py", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "DATABASE_URL": self.server.url},
                cwd=ROOT,
                start_new_session=True,
            )

    def heal(self) -> None:
        """Whatever was broken is whole again; what was killed is started anew."""
        self.start_server()
        for member in self.fleet.members:
            member.send(signal.SIGCONT, group=True)
            if member.clock:
                member.clock.set(0)
        self.proxy.tell("", Link.resume)
        self.server.execute("ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()")
        self.fleet.tend()

    def stop(self) -> None:
        self.fleet.stop()
        self.proxy.close()
        with suppress(subprocess.TimeoutExpired, psycopg.Error):
            self.pooler.send(signal.SIGKILL)
        self.server.remove()


def _url(port: int) -> str:
    return f"postgresql://postgres@127.0.0.1:{port}/postgres"


def _free_port() -> int:
    with socket.socket() as candidate:
        candidate.bind(("127.0.0.1", 0))
        return int(candidate.getsockname()[1])
