"""The running processes of one server, recognised by its `cluster_name`, which PostgreSQL shows in all of them.

A pid file proves nothing: its number may be a zombie's, a stranger's, or half written.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Processes:
    postmaster: int | None
    children: list[int]

    @property
    def all(self) -> list[int]:
        return [*([self.postmaster] if self.postmaster else []), *self.children]

    def send(self, number: signal.Signals) -> None:
        for pid in self.all:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue


def find(name: str) -> Processes:
    parents: dict[int, int] = {}
    children = []
    for pid, parent, program, command in _commands():
        if name not in command:
            continue
        if command.startswith("postgres: "):
            children.append(pid)
        elif Path(program).name == "postgres":
            parents[pid] = parent
    # A child looks like the postmaster until it has set its title.
    new = [pid for pid, parent in parents.items() if parent in parents]
    return Processes(next((pid for pid in parents if pid not in new), None), children + new)


def _commands() -> Iterator[tuple[int, int, str, str]]:
    """(pid, parent's pid, program, command line) of what runs; a zombie has none."""
    if not Path("/proc/self/cmdline").exists():
        yield from _commands_by_ps()
        return
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes().decode(errors="replace")
            parent = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
        except OSError:
            continue
        yield int(entry.name), parent, command.split("\0", 1)[0], command.replace("\0", " ")


def _commands_by_ps() -> Iterator[tuple[int, int, str, str]]:
    listing = subprocess.run(
        ["/bin/ps", "-axww", "-o", "pid=,ppid=,command="], capture_output=True, text=True, check=True
    )
    for line in listing.stdout.splitlines():
        pid, parent, command = line.split(None, 2)
        # A path with a space is cut at it; the option that follows the program is the same in each of our servers.
        yield int(pid), int(parent), command.split(" -D ", 1)[0], command
