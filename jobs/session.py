"""A connection that counts its round trips, and one of our own, which remembers how long statements are sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any, LiteralString

import psycopg
from psycopg.pq import Format, TransactionStatus

LONG = 4096
"""Characters from which on psycopg reads a statement for its placeholders each time: half a millisecond for a claim."""


def milliseconds(seconds: float) -> int:
    """As a timeout of the server takes them: never 0, which is none."""
    return min(max(1, round(seconds * 1000)), 2**31 - 1)


class Counted(psycopg.Connection[Any]):
    trips = 0
    """Odd while one is under way."""

    def wait(self, *args: Any, **kwargs: Any) -> Any:
        self.trips += 1
        try:
            return super().wait(*args, **kwargs)
        finally:
            self.trips += 1


class Session(Counted):
    _bounds: tuple[str, ...] = ()
    """What each transaction of a session that keeps nothing has to say."""

    def bounded(self) -> AbstractContextManager[Any]:
        """Around a statement alone that may wait for a lock: a transaction where its bound is said in each."""
        return self.transaction() if self._bounds else nullcontext()

    def bound_locks(self, seconds: float, *, kept: bool) -> None:
        """Let the server refuse, with LockNotAvailable, what has waited for a lock for so long. Somebody holds a job's row or
        a day: who waited with it would hold up all others. `kept` as of `bound_idleness`, of which this comes after."""
        setting = f"lock_timeout = {milliseconds(seconds)}"
        if kept:
            self.execute(f"SET {setting}")
        else:
            self._bounds = (*self._bounds, f"SET LOCAL {setting}")

    def bound_idleness(self, seconds: float, *, kept: bool) -> None:
        """Let the server end the session when a transaction waits for so long for its next statement. `kept`: the session
        keeps what is set, as no transaction pooler stands between; else each transaction of several statements says it.
        Between the statements of one pipeline no timeout runs: there the server asks whether a silent client is still
        there, and ends the session in about as long."""
        setting = f"idle_in_transaction_session_timeout = {milliseconds(seconds)}"
        if kept:
            quarter = max(1, round(seconds / 4))
            self.execute(
                f"SET {setting}; SET tcp_keepalives_idle = {quarter}; "
                f"SET tcp_keepalives_interval = {quarter}; SET tcp_keepalives_count = 3"
            )
        else:
            self._bounds = (f"SET LOCAL {setting}",)

    @contextmanager
    def transaction(self, *args: Any, **kwargs: Any) -> Iterator[psycopg.Transaction]:
        outer = self.info.transaction_status == TransactionStatus.IDLE
        with super().transaction(*args, **kwargs) as begun:
            for bound in self._bounds if outer else ():
                self.execute(bound)
            yield begun

    def execute(
        self, query: Any, params: Any = None, *, prepare: bool | None = None, binary: bool = False
    ) -> psycopg.Cursor[Any]:
        if not (isinstance(query, str) and len(query) > LONG and isinstance(params, dict)):
            return super().execute(query, params, prepare=prepare, binary=binary)
        text, names = _numbered(query)
        cursor = psycopg.RawCursor(self, row_factory=self.row_factory)
        cursor.format = Format.BINARY if binary else Format.TEXT
        return cursor.execute(text, [params[name] for name in names], prepare=prepare)


@lru_cache(maxsize=256)
def _numbered(query: str) -> tuple[LiteralString, tuple[str, ...]]:
    """With $1 instead of %(name)s, and the names in their order."""
    names: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return f"${names.setdefault(found[1], len(names) + 1)}" if found[1] else "%"

    text: Any = re.sub(r"%\((\w+)\)s|%%", number, query)
    return text, tuple(names)


def bounded(connection: psycopg.Connection[Any]) -> AbstractContextManager[Any]:
    """As of `Session`; Django's connection, in whose transaction a handler waits for itself alone, has no bound."""
    return connection.bounded() if isinstance(connection, Session) else nullcontext()
