"""Whether anything of a server still runs, and seeing to it that nothing does."""

from __future__ import annotations

import fcntl
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from jobs.errors import NotConfigured
from scheduler_project.embedded import processes
from scheduler_project.embedded.place import Place

ORPHANS = 10.0  # seconds that what a killed server left behind has to leave


@contextmanager
def alive(place: Place) -> Iterator[IO[str] | None]:
    """The lock that a server and all its children hold by inheritance, even seen from another container; None: held.

    Whoever has it knows that nothing of the server runs. That the pid file names nobody is not enough: a busy
    child outlives a killed server for a while, and a second server beside it would ruin the data.
    """
    with place.beside(".alive").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield file


def is_gone(place: Place) -> bool:
    with alive(place) as lock:
        return lock is not None and not processes.find(place.name).all


def end(place: Place, *, patience: float) -> None:
    """Return when nothing of the server runs; what still does after `patience` seconds is killed."""
    if _within(patience, lambda: is_gone(place)):
        return
    processes.find(place.name).send(signal.SIGKILL)
    if not _within(ORPHANS, lambda: is_gone(place)):
        raise NotConfigured(
            f"{place.data} is in use by a server that cannot be seen from here, in a container perhaps"
        )


def _within(seconds: float, true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True
