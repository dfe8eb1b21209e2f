"""A PostgreSQL of one test's own, which may be killed."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from django.core.management import call_command
from django.db import connections
from pytest_django import DjangoDbBlocker

from jobs import clock, partitions, tenants
from scheduler_project import embedded, env
from scheduler_project.embedded import presence, processes
from scheduler_project.embedded.place import locate
from tests.waiting import wait_until

OWN = "own"


@contextmanager
def own_server(blocker: DjangoDbBlocker) -> Iterator[Path]:
    """Its data: migrated, and durable. It has the alias `own`, and is gone at the end."""
    folder = Path(
        tempfile.mkdtemp(prefix="punctual-test-")
    )  # not pytest's own: another account must reach it
    folder.chmod(0o755)
    data = folder / "pg"
    try:
        found = env.database("NONE", embedded.start(data, durable=True))
        connections.settings[OWN] = {**connections.settings["default"], **found}
        with blocker.unblock():
            call_command("migrate", database=OWN, verbosity=0)
            partitions.ensure(partitions.wanted_days(clock.now(OWN))[:5], OWN)
            yield data
            connections[OWN].close()
            del connections[OWN]
    finally:
        tenants.forget()
        connections.settings.pop(OWN, None)
        processes.find(locate(data).name).send(signal.SIGKILL)
        presence.end(locate(data), patience=0)
        rmtree(locate(data).sockets, ignore_errors=True)
        rmtree(folder)


def start_again(data: Path) -> None:
    embedded.start(data, durable=True)
    connections[OWN].close()  # from before


def crash(data: Path) -> None:
    postmaster = processes.find(locate(data).name).postmaster
    assert postmaster
    os.kill(postmaster, signal.SIGKILL)


def stop_at_once(data: Path) -> None:
    postmaster = processes.find(locate(data).name).postmaster
    assert postmaster
    os.kill(postmaster, signal.SIGQUIT)
    wait_until(lambda: not processes.find(locate(data).name).all)
