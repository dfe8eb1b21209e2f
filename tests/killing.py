"""Kill points: a database session, or a whole process, that is ended at a chosen round trip."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from tests.factories import own_connection

Connection = psycopg.Connection[Any]


@dataclass
class Point:
    """After round trip `number` (from 0) of what runs in the block: the server has done it, the caller never hears."""

    number: int
    trips: int = 0
    name: str = "not reached"

    @property
    def reached(self) -> bool:
        return self.trips > self.number


@contextmanager
def kill_point(connection: Connection, number: int) -> Iterator[Point]:
    point = Point(number)
    wait: Callable[..., Any] = connection.wait

    def wait_and_die(trip: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
        name = _name_of(trip)
        answer = wait(trip, *args, **kwargs)
        point.trips += 1
        if point.trips - 1 == number:
            point.name = name
            _end_session(connection.info.backend_pid)
            if "copy" not in name:  # a copy is not over with its trip: the next one finds the session dead
                raise psycopg.OperationalError(f"killed after: {name}")
        return answer

    connection.wait = wait_and_die  # type: ignore[method-assign, assignment]
    try:
        yield point
    finally:
        connection.wait = wait  # type: ignore[method-assign]


def die_at(number: int, epitaph: Path, *, sent: bool) -> None:
    """Kill this process with SIGKILL at round trip `number` (from 0) of this thread from now on: with its statement on
    the way to the server when `sent`, else with the reply here. The trip's name goes into `epitaph`."""
    wait: Callable[..., Any] = Connection.wait
    thread, numbers = threading.get_ident(), count()

    def wait_and_die(self: Connection, trip: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
        mine = threading.get_ident() == thread and next(numbers) == number
        if mine:
            epitaph.write_text(_name_of(trip))
        if mine and sent:
            next(trip, None)
            os.kill(os.getpid(), signal.SIGKILL)
        answer = wait(self, trip, *args, **kwargs)
        if mine:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    psycopg.Connection.wait = wait_and_die  # type: ignore[method-assign, assignment]


def _name_of(trip: Generator[Any, Any, Any]) -> str:
    """The first line of the statement, or what else goes to the server."""
    kind = trip.gi_code.co_name.strip("_").removesuffix("_gen")  # type: ignore[attr-defined]
    frame: Any = trip.gi_frame  # type: ignore[attr-defined]
    query = frame.f_locals.get("query") if frame else None
    if query is None:
        return str(kind)
    text = query if isinstance(query, str) else query.as_string(None)
    return str(text.strip().splitlines()[0][:70])


def _end_session(pid: int) -> None:
    with own_connection() as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
