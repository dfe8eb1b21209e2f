"""The command lines, and the processes that run them."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from scheduler_project.children import ROOT, Children
from tests.bench.peers import install
from tests.bench.peers.peer import Home, Peer, PeerFailed, Setting

MANAGE = str(ROOT / "manage.py")
ENV = {"NODE_PATH": str(install.NODE_FOLDER / "node_modules")}
SAID = 1500
"""Characters of their log that are shown when something went wrong."""
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def adapter(peer: Peer, verb: str, options: Mapping[str, Any]) -> list[str]:
    """One verb of a peer's adapter."""
    if peer.home is Home.NODE:
        return [
            str(install.node()),
            str(install.HERE / "node" / "main.mjs"),
            peer.name,
            verb,
            json.dumps(options),
        ]
    python = sys.executable if peer.home is Home.CHECKOUT else str(install.python(peer))
    return [python, "-m", "tests.bench.peers.adapters", peer.name, verb, json.dumps(options)]


def workers(peer: Peer, setting: Setting) -> Iterator[tuple[str, list[str]]]:
    """Name and command line of each process."""
    for number in range(1, setting.processes + 1):
        if peer.home is Home.CHECKOUT:
            yield f"dispatcher {number}", [sys.executable, MANAGE, "rundispatcher"]
            yield f"worker {number}", [sys.executable, MANAGE, "runworker"]
        else:
            yield f"worker {number}", adapter(peer, "work", setting.options)


class Crew(Children):
    """Programs of any kind. They are asked to leave also when this process is killed (Linux); what they say goes to a
    file."""

    def __init__(self, log: Path, env: Mapping[str, str]) -> None:
        super().__init__()
        self.log, self._env = log, env
        log.touch()

    def start(self, name: str, module: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        parent = os.getpid()
        with self.log.open("ab") as log:
            self._running[name] = subprocess.Popen(
                list(module),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**self._env, **(env or {})},
                cwd=ROOT,
                start_new_session=True,
                preexec_fn=lambda: _tie(parent),
            )

    def check(self) -> None:
        """PeerFailed when one of them is gone."""
        if ended := self.ended():
            raise PeerFailed(f"{ended}, and nobody had asked it to{self.said()}")

    def said(self) -> str:
        said = self.log.read_text(errors="replace")[-SAID:].strip()
        return f":\n{said}" if said else ""


def _tie(parent: int) -> None:
    """In the child, before it becomes the program."""
    if _libc:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)
