"""The PostgreSQL server that all peers share, one new database after another."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import django
import psycopg

from scheduler_project import embedded, env
from scheduler_project.benchmark.offset import clock_offset
from scheduler_project.scratch import new_name, scratch, with_database
from tests.bench.peers.peer import Home, Peer, PeerFailed

PREFIX = "punctual_peers_"
WORK = "tests.bench.peers.work"
_ASKED = (
    "server_version",
    "synchronous_commit",
    "fsync",
    "full_page_writes",
    "shared_buffers",
    "wal_compression",
)


@dataclass(frozen=True)
class Server:
    url: str
    home: str
    """The database from which others are made."""
    is_ours: bool

    def settings(self) -> dict[str, str]:
        with psycopg.connect(self.url) as connection:
            return {name: _one(connection, "SELECT current_setting(%s)", [name]) for name in _ASKED}


@dataclass
class Database:
    """Where a peer keeps its jobs during one run."""

    env: Mapping[str, str]
    """In which its processes find it."""
    connection: psycopg.Connection[Any]
    unfinished: str

    def is_done(self) -> bool:
        return not _one(self.connection, self.unfinished)

    def checkpoint(self) -> None:
        """So that none begins in the middle of a run."""
        with suppress(psycopg.errors.InsufficientPrivilege):
            self.connection.execute("CHECKPOINT")

    def analyze(self) -> None:
        self.connection.execute("ANALYZE")


def enter() -> Server:
    """That of DATABASE_URL, else this checkout's own. No setting of the scheduler stays in the environment, and
    Django is set up."""
    is_ours = not os.environ.get("DATABASE_URL", "").strip()
    url = os.environ.get("DIRECT_DATABASE_URL", "").strip() or embedded.ensure()
    for name in list(os.environ):
        if name.startswith(("SCHEDULER_", "PG")) or name == "DIRECT_DATABASE_URL":
            del os.environ[name]
    os.environ.update(
        DJANGO_SETTINGS_MODULE="scheduler_project.settings",
        DATABASE_URL=url,
        SECRET_KEY=secrets.token_urlsafe(50),
        ALLOWED_HOSTS="localhost",
        DEBUG="0",
        LOG_LEVEL="WARNING",
    )
    django.setup()
    return Server(url, env.database("DATABASE_URL")["NAME"], is_ours)


@contextmanager
def database(server: Server, peer: Peer) -> Iterator[Database]:
    """A new one, dropped at the end."""
    name = new_name(PREFIX)
    url = with_database(server.url, name)
    sweep = PREFIX if server.is_ours else None
    with scratch(name, server.home, sweep=sweep), psycopg.connect(url, autocommit=True) as connection:
        if offset := clock_offset(connection):
            raise PeerFailed(f"the server's clock differs by {offset * 1000:.1f} ms: use one on this host")
        ours = {"DATABASE_URL": url, "SCHEDULER_APPS": WORK}
        yield Database(ours if peer.home is Home.CHECKOUT else _libpq(url), connection, peer.unfinished)


def _libpq(url: str) -> dict[str, str]:
    """The address as environment variables of libpq, which every client library reads."""
    parsed = psycopg.pq.Conninfo.parse(url.encode())
    return {option.envvar.decode(): option.val.decode() for option in parsed if option.envvar and option.val}


def _one(connection: psycopg.Connection[Any], question: str, values: list[Any] | None = None) -> Any:
    row = connection.execute(question.encode(), values).fetchone()
    return row[0] if row else None
