"""Child processes that live and end together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """An event that is set by the signals that mean stop, for as long as the block lasts."""
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, handle) for number in STOPPING}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Children:
    """Each in a session of its own: Ctrl-C reaches only the parent, which then asks each of them once."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, module: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self._running[name] = subprocess.Popen(
            [sys.executable, *module],
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._running.values()]

    def ended(self) -> str | None:
        """The first that is no longer there, and how it ended."""
        for name, process in self._running.items():
            if (code := process.poll()) is not None:
                how = f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
                return f"{name} ended {how}"
        return None

    def stop(self, patience: float) -> None:
        """Ask all to stop, wait, and kill what is left, with whatever it started."""
        deadline = time.monotonic() + patience
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            _kill_group(process.pid)
            process.wait()
        self._running.clear()


class TiedChildren(Children):
    """They leave also when this process is killed (Linux). What they say goes to a file."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self.log = log

    def start(self, name: str, module: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        with self.log.open("ab") as log:
            self._running[name] = subprocess.Popen(
                [sys.executable, "-m", "scheduler_project.tied", str(os.getpid()), *module],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                cwd=ROOT,
                start_new_session=True,
            )


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
