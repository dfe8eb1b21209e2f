"""Start and stop one server."""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psycopg

from jobs.errors import NotConfigured
from scheduler_project.embedded import account, binaries, cluster, presence, processes
from scheduler_project.embedded.place import PORT, Place, locate, own_folder

SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "shared_buffers": "256MB",
    "max_connections": "300",
    "client_connection_check_interval": "1s",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "wal_compression": "on",
    "enable_partitionwise_join": "on",
    "jit": "off",
}
FORGETFUL = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
RECOVERY = 600.0  # seconds that replaying the log after a crash may take


def start(
    data: Path,
    *,
    settings: Mapping[str, str] | None = None,
    durable: bool = True,
    programs: Path | None = None,
) -> str:
    """Make the data folder if it is new, start its server unless it runs, and give its address.

    `durable=False` is for tests: a crash of the machine may lose everything. `programs` is the `bin` folder of
    another PostgreSQL than the wheel's.
    """
    place = locate(data)
    with place.starting():
        if not _answers(place):
            server = _prepare(place, durable=durable, programs=programs)
            server.launch({**SETTINGS, **({} if durable else FORGETFUL), **(settings or {})})
    return place.uri


def stop(data: Path) -> bool:
    """Stop the server of this data folder at once but cleanly; False when none was running."""
    place = locate(data)
    cluster.check_owner(place)
    if not place.data.parent.exists():
        return False
    with place.starting():
        running = processes.find(place.name)
        if running.postmaster:
            with suppress(ProcessLookupError):
                os.kill(running.postmaster, signal.SIGINT)
        presence.end(place, patience=60.0)
        with suppress(OSError):
            place.sockets.rmdir()
    return bool(running.all)


def is_running(data: Path) -> bool:
    """Whether the server of this data folder accepts connections."""
    return _answers(locate(data))


def _answers(place: Place) -> bool:
    cluster.check_owner(place)
    if not place.is_made:
        return False
    try:
        with psycopg.connect(place.uri, connect_timeout=5) as connection:
            row = connection.execute("SHOW data_directory").fetchone()
    except psycopg.OperationalError:
        # A server that is full refuses too; to be refused by one that is still starting does not count.
        return psycopg.pq.PGconn.ping(f"{place.uri}&connect_timeout=5".encode()) == psycopg.pq.Ping.OK
    if row is None or Path(row[0]) != place.data:
        raise NotConfigured(f"the server at {place.sockets} is not that of {place.data}; set DATABASE_URL")
    return True


def _prepare(place: Place, *, durable: bool, programs: Path | None) -> Server:
    runs_as = account.find_or_make(place.data)
    folder, major = binaries.prepare(programs, runs_as, place.spare)
    own_folder(place.sockets, mode=0o700, owner=runs_as)
    if not place.is_made:
        # A server whose folder was removed under it would, when it leaves, take our socket with it.
        presence.end(place, patience=0.0)
    cluster.make(place, folder / "initdb", runs_as, durable=durable)
    cluster.check_version(place, major)
    return Server(place, folder, runs_as)


@dataclass(frozen=True)
class Server:
    place: Place
    folder: Path
    runs_as: account.Account | None

    def launch(self, settings: Mapping[str, str]) -> None:
        said, deadline = "", None
        while not self._came_up():
            passing = not said or "lock file" in said or "still in use" in said
            deadline = deadline or time.monotonic() + presence.ORPHANS
            if not passing or time.monotonic() > deadline:
                raise NotConfigured(f"PostgreSQL did not start: {said}")
            with presence.alive(self.place) as lock:
                if lock is None:
                    continue
                for stale in (self.place.pid_file, *self.place.socket_files):
                    stale.unlink(missing_ok=True)
                said = self._pg_ctl_start(settings, lock)

    def _came_up(self) -> bool:
        """True: it answers. False: nothing of it runs any more. Waits as long as neither is so."""
        deadline = time.monotonic() + RECOVERY
        while not _answers(self.place):
            time.sleep(0.05)
            if not processes.find(self.place.name).postmaster:
                presence.end(self.place, patience=presence.ORPHANS)
                return False
            if time.monotonic() > deadline:
                raise NotConfigured(
                    f"PostgreSQL still recovers {self.place.data} after {RECOVERY:.0f} s: see {self._log}"
                )
        return True

    def _pg_ctl_start(self, settings: Mapping[str, str], lock: IO[str]) -> str:
        """Why it is not there, in case it is not: the first fatal line of the log."""
        named = {
            **settings,
            "cluster_name": self.place.name,
            "unix_socket_directories": f'"{self.place.sockets}"',
        }
        options = " ".join(f"-c {shlex.quote(f'{name}={value}')}" for name, value in named.items())
        before = self._log.stat().st_size if self._log.exists() else 0
        args: list[str | Path] = [
            "-D",
            self.place.data,
            "-w",
            "-t",
            "120",
            "-l",
            self._log,
            "-o",
            options,
            "start",
        ]
        code, said = account.run(self.runs_as, [self.folder / "pg_ctl", *args], keep=[lock.fileno()])
        reason = "it ended as soon as it had started" if code == 0 else said.strip()
        if self._log.exists():
            with self._log.open(errors="replace") as log:
                log.seek(before)
                reason = next((line.strip() for line in log if "FATAL:" in line), reason)
        return f"{reason} (see {self._log})"

    @property
    def _log(self) -> Path:
        return self.place.data / "log"
