"""What the figures were measured on."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scheduler_project.children import ROOT
from tests.bench.peers import install
from tests.bench.peers.peer import Home, Peer
from tests.bench.peers.server import Server

SOURCES = ("jobs", "dispatch", "scheduler_project")
CPUINFO = Path("/proc/cpuinfo")


def describe(server: Server, peers: Iterable[Peer]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "cores": os.cpu_count(),
        "cpu": _cpu(),
        "system": platform.system(),
        "python": platform.python_version(),
        "server": server.settings(),
    }
    homes = {peer.home for peer in peers}
    if Home.NODE in homes:
        found["node"] = _said([str(install.node()), "--version"], r"v(\S+)")
    if any(peer.on_redis for peer in peers):
        found["redis"] = _said([install.redis_server(), "--version"], r"v=(\S+)")
    return found


def sentence(machine: dict[str, Any], repeat: int) -> str:
    """The same for a reader."""
    server = machine["server"]
    settings = ", ".join(f"{name} {value}" for name, value in server.items() if name != "server_version")
    programs = [
        f"PostgreSQL {server['server_version'].split()[0]} ({settings})",
        f"Python {machine['python']}",
    ]
    programs += [f"{name.title()} {machine[name]}" for name in ("node", "redis") if name in machine]
    rounds = "one round" if repeat == 1 else f"medians of {repeat} rounds"
    return f"{machine['cores']} cores of {machine['cpu']}; {', '.join(programs)}; {rounds}."


def code() -> str:
    """A sum over this project's own code: that of two runs is the same only if they ran the same."""
    total = hashlib.sha256()
    for file in sorted(file for name in SOURCES for file in (ROOT / name).rglob("*")):
        if file.suffix in (".py", ".sql"):
            total.update(file.read_bytes())
    return total.hexdigest()[:12]


def _cpu() -> str:
    if CPUINFO.exists() and (found := re.search(r"^model name\s*: (.+)$", CPUINFO.read_text(), re.MULTILINE)):
        return found[1].strip()
    return platform.machine()


def _said(command: list[str], pattern: str) -> str:
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(pattern, said)
    return found[1] if found else said.strip()
