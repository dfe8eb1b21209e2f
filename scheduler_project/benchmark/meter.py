"""What work costs: CPU of the server and of Python, WAL and commits."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from django.db import connections

Connection = psycopg.Connection[Any]

PROC = Path("/proc")
LEAVING = 10.0
"""Seconds in which the sessions of processes that ended are gone."""

_SESSIONS: LiteralString = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' "
    "AND application_name LIKE 'punctual %' AND pid <> pg_backend_pid()"
)
_FLUSH: LiteralString = "SELECT 1 FROM pg_stat_force_next_flush()"
_COMMITS: LiteralString = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"


@dataclass(frozen=True)
class Reading:
    """All of them since some beginning; the difference of two is what happened between them."""

    server: float | None
    """Seconds of CPU of all the server's processes; None when they cannot be seen from here."""
    python: float | None
    """Of the processes that are measured; None where there is no /proc."""
    wal: int
    commits: int

    def __sub__(self, other: Reading) -> Reading:
        return Reading(
            _minus(self.server, other.server),
            _minus(self.python, other.python),
            self.wal - other.wal,
            self.commits - other.commits,
        )

    def __add__(self, other: Reading) -> Reading:
        return Reading(
            _plus(self.server, other.server),
            _plus(self.python, other.python),
            self.wal + other.wal,
            self.commits + other.commits,
        )

    def per_job(self, jobs: int) -> dict[str, float | None]:
        return {
            "server_cpu_us_per_job": _micro(self.server, jobs),
            "python_cpu_us_per_job": _micro(self.python, jobs),
            "wal_bytes_per_job": round(self.wal / jobs, 1),
            "commits_per_job": round(self.commits / jobs, 4),
        }


NOTHING = Reading(0.0, 0.0, 0, 0)


class Meter:
    def __init__(self, connection: Connection, python: Sequence[int]) -> None:
        """`python`: the processes whose CPU counts, with all they start."""
        self.connection, self._python = connection, python
        self._postmaster = _postmaster(connection)
        self._asked = 0

    def read(self) -> Reading:
        wal = self._ask("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
        server = tree_cpu([self._postmaster]) if self._postmaster else None
        return Reading(server, tree_cpu(self._python), wal, self._commits())

    def with_all_commits(self, reading: Reading) -> Reading:
        """Sessions report their commits now and then, and when they end: so this asks again when the processes have
        ended."""
        until = time.monotonic() + LEAVING
        while time.monotonic() < until and self._ask(_SESSIONS):
            time.sleep(0.01)
        return replace(reading, commits=self._commits())

    def _commits(self) -> int:
        """Of this database, without those of our questions."""
        self._ask(_FLUSH)
        if connections["default"].connection is not None:
            with connections["default"].cursor() as cursor:
                cursor.execute(_FLUSH)
            self._asked += 1
        asked = self._asked
        return self._ask(_COMMITS) - asked

    def _ask(self, question: LiteralString) -> int:
        self._asked += 1
        row = self.connection.execute(question).fetchone()
        return int(row[0]) if row else 0


def tree_cpu(roots: Iterable[int]) -> float | None:
    """Seconds of CPU that these processes and their descendants have used, those that have ended included."""
    if not (PROC / "self" / "stat").exists():
        return None
    return sum(used for _, used in _tree(roots))


def tree_memory(roots: Iterable[int]) -> dict[int, float]:
    """Bytes of memory that are resident in each of these processes and their descendants and shared with nobody, as the
    pages of our ledger are, of which each job touches more; empty where there is no /proc."""
    found = {}
    for pid, _ in _tree(roots):
        with suppress(OSError):
            resident, shared = map(int, (PROC / str(pid) / "statm").read_text().split()[1:3])
            found[pid] = float((resident - shared) * os.sysconf("SC_PAGE_SIZE"))
    return found


def _tree(roots: Iterable[int]) -> Iterator[tuple[int, float]]:
    """Each of these processes and their descendants, and the seconds of CPU it has used."""
    seconds: dict[int, float] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for entry in PROC.iterdir() if PROC.exists() else ():
        if entry.name.isdigit():
            with suppress(OSError):
                parent, used = _stat(entry)
                seconds[int(entry.name)] = used
                children[parent].append(int(entry.name))
    found: set[int] = set()
    todo = list(roots)
    while todo:
        pid = todo.pop()
        if pid not in found:
            found.add(pid)
            todo += children[pid]
            yield pid, seconds.get(pid, 0.0)


def _stat(process: Path) -> tuple[int, float]:
    """Its parent, and its CPU with that of the children it has waited for."""
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _postmaster(connection: Connection) -> int | None:
    """The parent of our backend, if that is a process of this host: its command line names our database."""
    with suppress(OSError):
        backend = PROC / str(connection.info.backend_pid)
        command = (backend / "cmdline").read_bytes().decode(errors="replace")
        if command.startswith("postgres") and f" {connection.info.dbname} " in command:
            return _stat(backend)[0]
    return None


def _minus(after: float | None, before: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _plus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _micro(seconds: float | None, jobs: int) -> float | None:
    return None if seconds is None else round(seconds * 1e6 / jobs, 1)
