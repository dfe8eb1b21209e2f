"""A Redis of its own for one run, on a socket in a folder."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.peers import install
from tests.bench.peers.peer import PeerFailed
from tests.bench.peers.programs import Crew

STARTING = 10.0
PATIENCE = 5.0
_LEFT = ("LLEN peers", "HLEN unacked")
"""Messages that wait in the queue, and those that a worker holds."""


@dataclass
class Redis:
    env: Mapping[str, str]
    """In which the peer's processes find it."""
    socket: Path

    def is_done(self) -> bool:
        return all(self.ask(question) == ":0" for question in _LEFT)

    def checkpoint(self) -> None:
        """It writes none."""

    def analyze(self) -> None:
        """It plans nothing."""

    def ask(self, question: str) -> str:
        """The first line of the answer."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.socket))
            connection.sendall(f"{question}\r\n".encode())
            with connection.makefile() as answer:
                return answer.readline().strip()


@contextmanager
def redis(folder: Path) -> Iterator[Redis]:
    """As in production: every message goes to the log at once, which goes to the disk every second."""
    place = folder / "redis.sock"
    crew = Crew(folder / "redis.log", {})
    wanted = {"port": "0", "unixsocket": str(place), "dir": str(folder), "save": ""}
    wanted |= {"appendonly": "yes", "appendfsync": "everysec"}
    try:
        crew.start(
            "redis",
            [
                install.redis_server(),
                *(word for name, value in wanted.items() for word in (f"--{name}", value)),
            ],
        )
        server = Redis({"PEERS_REDIS": f"redis+socket://{place}"}, place)
        until = time.monotonic() + STARTING
        while not place.exists() or server.ask("PING") != "+PONG":
            crew.check()
            if time.monotonic() > until:
                raise PeerFailed(f"redis did not start{crew.said()}")
            time.sleep(0.02)
        yield server
    finally:
        crew.stop(PATIENCE)
