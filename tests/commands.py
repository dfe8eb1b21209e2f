"""Our commands as real processes, and what their handlers wrote into the run ledger."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote
from uuid import UUID

from django.db import connections

from tests import application
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[1]


def database_url() -> str:
    """The address of the test database, for processes and connections beside Django's."""
    here = connections["default"].settings_dict
    login = quote(here["USER"]) + (f":{quote(here['PASSWORD'], safe='')}" if here["PASSWORD"] else "")
    host, port = quote(here["HOST"], safe=""), here["PORT"] or 5432
    return f"postgresql://{login}@/{quote(here['NAME'])}?host={host}&port={port}"


def environment(url: str | None = None) -> dict[str, str]:
    """The environment of a command that works on the test database, with a short lease and grace."""
    return {
        **os.environ,
        "DATABASE_URL": url or database_url(),
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "SCHEDULER_LEASE": "3",
        "SCHEDULER_GRACE": "2",
    }


class Command:
    """One `manage.py` process and its children, in a process group of their own."""

    def __init__(self, arguments: tuple[str, ...], env: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", *arguments],
                cwd=ROOT,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def errors(self) -> list[str]:
        return [line for line in self.log.splitlines() if "level=error" in line or "level=critical" in line]

    @property
    def children(self) -> list[int]:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()] if path.exists() else []

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, timeout: float = 60.0) -> int:
        return self.process.wait(timeout)

    def says(self, text: str, times: int = 1) -> None:
        """Wait until its log has this text."""

        def said() -> bool:
            assert self.process.poll() is None or self.log.count(text) >= times, self.log
            return self.log.count(text) >= times

        try:
            wait_until(said, what=f"{text!r} in {self._log}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.threads()}\n{self.log}") from None

    def threads(self) -> str:
        """What each thread of it and of its children does in the kernel, for who looks for the cause of a silence."""
        lines = []
        for pid in (self.process.pid, *self.children):
            for task in sorted(Path(f"/proc/{pid}/task").glob("*")):
                with suppress(OSError):
                    name, state = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
                    waits = (task / "wchan").read_text()
                    lines.append(f"{pid} {task.name} {name} {state.split()[0]} {waits}")
        return "\n".join(lines)

    def end(self) -> None:
        """Kill whatever is left of it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Commands:
    """Starts commands and sees to it that none outlives the test."""

    def __init__(self, env: Mapping[str, str], folder: Path) -> None:
        self.env, self.folder = env, folder
        self._started: list[Command] = []

    def start(self, *arguments: str, **env: str) -> Command:
        log = self.folder / f"{len(self._started)}-{arguments[0]}.log"
        command = Command(arguments, application.environment(arguments[0], {**self.env, **env}), log)
        self._started.append(command)
        return command

    def worker(self, *arguments: str, processes: int = 1, threads: int = 1, **env: str) -> Command:
        """A worker that has reached its loop."""
        options = ("--processes", str(processes), "--threads", str(threads))
        worker = self.start("runworker", *options, *arguments, **env)
        worker.says("worker started", processes)
        return worker

    def dispatcher(self, *arguments: str, **env: str) -> Command:
        dispatcher = self.start("rundispatcher", *arguments, **env)
        dispatcher.says("dispatcher started")
        return dispatcher


@contextmanager
def commands(env: Mapping[str, str], folder: Path) -> Iterator[Commands]:
    started = Commands(env, folder)
    try:
        yield started
    finally:
        for command in started._started:
            command.end()


class Event(NamedTuple):
    job_id: UUID
    attempt: int
    name: str
    pid: int
    at: float


class Ledger:
    """What the bodies of jobs wrote about themselves."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def events(self) -> list[Event]:
        if not self.path.exists():
            return []
        fields = [line.split() for line in self.path.read_text().splitlines()]
        return [
            Event(UUID(job), int(attempt), name, int(pid), float(at))
            for job, attempt, name, pid, at in fields
        ]

    def count(self, name: str, job_id: UUID | None = None) -> int:
        return len([e for e in self.events if e.name == name and job_id in (None, e.job_id)])

    def ids(self, name: str) -> set[UUID]:
        return {event.job_id for event in self.events if event.name == name}


def is_alive(pid: int) -> bool:
    """A zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (
        FileNotFoundError,
        ProcessLookupError,
    ):  # gone before we opened it, or between that and the reading
        return False
