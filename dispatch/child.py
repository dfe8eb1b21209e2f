"""The process of one worker: `python -m dispatch.child`, started by the supervisor, never by hand.

Its first line on standard input is its settings as JSON; then `drain` asks it to end, and the end of the input means
that its supervisor is gone. A supervisor that was killed takes it along (Linux: parent-death signal).
"""

from __future__ import annotations

import ctypes
import gc
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import django
from django.db import connections

from dispatch import forks
from dispatch.slots import Slots
from jobs.clock import boottime
from jobs.steady import time

PR_SET_PDEATHSIG = 1
ORPHANED = 70
"""Exit status of a child whose supervisor is gone."""
TURN = 0.2
"""Seconds between two looks at the lease."""
BROKEN = 1
"""Of one that cannot go on."""
NEW_OBJECTS = 10_000

logger = logging.getLogger(__name__)


def main() -> None:
    lines = _lines(_control())
    settings: dict[str, Any] = json.loads(next(lines))
    _die_with(settings.pop("supervisor"))
    _restore_path(settings.pop("python_path"))
    slots = Slots(settings.pop("fd"), settings.pop("slots"))
    django.setup()
    _name_sessions(f"punctual worker {settings['process_id']}")

    from dispatch.worker import Worker, WorkerSettings  # needs the apps

    worker = Worker(WorkerSettings(**{**settings, "queues": tuple(settings["queues"])}), slots)
    for number in (signal.SIGINT, signal.SIGHUP):  # they go to the whole group: the supervisor decides
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: worker.drain())
    forks.die_as_usual()
    threading.Thread(target=_obey, args=(worker, lines), name="supervisor", daemon=True).start()
    threading.Thread(target=_guard, args=(slots,), name="guard", daemon=True).start()
    _spare_collector()
    status = 0
    try:
        worker.run()
    except BaseException:
        logger.exception("a worker process ends by an error")
        status = BROKEN
    logging.shutdown()
    os._exit(status)  # threads that a body has left behind must not hold up the end


def _die_with(supervisor: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:  # it died before the call
        os._exit(ORPHANED)


def _restore_path(before: str | None) -> None:
    """PYTHONPATH was for our own start: another Python that a body starts would import this one's library."""
    os.environ.pop("PYTHONPATH", None)
    if before is not None:
        os.environ["PYTHONPATH"] = before


def _name_sessions(name: str) -> None:
    """Let the supervisor find the sessions of our handlers, to end them after our death."""
    for connection in connections.all():
        if connection.vendor == "postgresql":  # the engine may have any name, as PostGIS has
            settings = connection.settings_dict  # of this database's connections in all threads
            settings["OPTIONS"] = {**settings["OPTIONS"], "application_name": name}


def _spare_collector() -> None:
    """Let the garbage collector pass over what stays for good (a walk through all of it stops every body for 50 ms), and
    begin only when more is new than what a process holds of jobs."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(max(NEW_OBJECTS, gc.get_threshold()[0]), *gc.get_threshold()[1:])


def _control() -> int:
    """The supervisor's end of the pipe, by a number of its own. Nobody waits in `sys.stdin`: a process that a body forks
    closes that first, and would wait for ever for the lock of a reader that it has not."""
    descriptor = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return descriptor


def _lines(descriptor: int) -> Iterator[str]:
    """Until the other end is closed."""
    rest = b""
    while data := os.read(descriptor, 4096):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line.decode()


def _obey(worker: Any, lines: Iterator[str]) -> None:
    try:
        for line in lines:
            if line == "drain":
                worker.drain()
    finally:
        os._exit(ORPHANED)


def _guard(slots: Slots) -> None:
    """End, as our supervisor would end us, for a body that must not outlive the lease: he may have been stopped."""
    while True:
        time.sleep(TURN)
        if slots.lease_left(boottime()) < 2 * TURN and any(each.guarded for each in slots.started()):
            os._exit(BROKEN)


if __name__ == "__main__":
    main()
