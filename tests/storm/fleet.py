"""The processes of the storm, started, killed, frozen, deployed and, when they end by themselves, started anew as an init
system would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from jobs.clock import boottime
from scheduler_project.children import ROOT
from tests.storm.clock import Clock
from tests.storm.environment import NEW, OLD

READY = {"worker": "worker started", "dispatcher": "dispatcher started"}


@dataclass
class Member:
    """One place in the fleet; the process in it changes."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    log: Path
    clock: Clock | None = None
    """A wall clock that can be set."""
    version: str = OLD
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    leaving: bool = False
    """It was asked to end, and whoever asked starts it anew."""
    _log_start: int = 0

    @property
    def kind(self) -> str:
        return self.name.split()[0]

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def said(self) -> str:
        """The log of the present process."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    @property
    def ready(self) -> bool:
        return self.alive and READY.get(self.kind, "") in self.said

    @property
    def pids(self) -> frozenset[int]:
        """Of the process and its children."""
        if self.process is None:
            return frozenset()
        found = {self.process.pid}
        file = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        with suppress(OSError):
            found |= {int(pid) for pid in file.read_text().split()}
        return frozenset(found)

    @property
    def children(self) -> list[int]:
        return sorted(self.pids - {self.process.pid if self.process else 0})

    def start(self) -> None:
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "scheduler_project.tied", str(os.getpid()), *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.env, "SCHEDULER_APPS": self.version},
                cwd=ROOT,
                start_new_session=True,
            )

    def send(self, number: signal.Signals, *, group: bool = False) -> None:
        if self.alive and self.process is not None:
            with suppress(ProcessLookupError):
                (os.killpg if group else os.kill)(self.process.pid, number)

    def kill(self) -> None:
        """SIGKILL the process; its children follow by themselves, which is part of what is tried."""
        self.send(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()


class Fleet:
    def __init__(self) -> None:
        self.members: list[Member] = []
        self.complaints: list[str] = []
        self.restarts = 0

    def of(self, kind: str) -> list[Member]:
        return [member for member in self.members if member.kind == kind]

    def tend(self) -> None:
        """Start anew what has ended. One that had reached its loop must not end unless it was asked to."""
        for member in self.members:
            if member.alive or member.leaving or member.process is None:
                continue
            if READY.get(member.kind, "-") in member.said and member.process.returncode != -signal.SIGKILL:
                last = [line for line in member.said.splitlines() if line.strip()][-1:]
                self.complaints.append(
                    f"{member.name} ended with {member.process.returncode}, unasked: {''.join(last)[:200]}"
                )
            self.restarts += 1
            member.start()

    def deploy(self, member: Member, patience: float, meanwhile: Callable[[], None]) -> None:
        """SIGTERM, the end, a new process with the other version of the code."""
        begun = boottime()
        member.leaving = True
        member.send(signal.SIGTERM)
        while member.alive and boottime() - begun < patience:
            meanwhile()
        if member.alive:
            self.complaints.append(f"{member.name} had not ended {patience:.0f} s after SIGTERM")
            member.kill()
        elif member.process is not None and member.process.returncode:
            last = [line for line in member.said.splitlines() if line.strip()][-1:]
            self.complaints.append(
                f"{member.name} ended with {member.process.returncode} after SIGTERM: {''.join(last)[:200]}"
            )
        member.version = OLD if member.version == NEW else NEW
        member.start()
        member.leaving = False

    def stop(self) -> None:
        """All leave."""
        for member in self.members:
            member.send(signal.SIGCONT, group=True)
            member.send(signal.SIGTERM)
        for member in self.members:
            if member.process is not None:
                with suppress(subprocess.TimeoutExpired):
                    member.process.wait(15)
                with suppress(ProcessLookupError):
                    os.killpg(member.process.pid, signal.SIGKILL)
                member.process.wait()
                member.process = None
