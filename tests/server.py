"""The PostgreSQL of the tests: one per checkout and version, shared by the sessions that run at the same time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from jobs.errors import NotConfigured
from scheduler_project import embedded
from scheduler_project.embedded.place import make_folder

GIVEN = bool(os.environ.get("DATABASE_URL"))
VERSION = os.environ.get("TEST_POSTGRES", "18")
DATA = embedded.CHECKOUT.with_name(f"test-pg{VERSION}")
DATABASE_NAME = "TEST_DATABASE_NAME"
"""The variable that hands the name of a session's database on to its xdist workers."""
UNTOUCHED = "untouched"
"""The last word of the name of a test database's copy that no test works on."""
NUMBERS = range(1, 100)


def uri() -> str:
    return embedded.uri(DATA)


def programs() -> Path | None:
    """None: the wheel's."""
    if VERSION == "18":
        return None
    folder = Path("/usr/lib/postgresql", VERSION, "bin")
    if not folder.exists():
        raise NotConfigured(f"TEST_POSTGRES={VERSION}, but Debian's postgresql-{VERSION} is not installed")
    return folder


class Session:
    """One run of pytest. Its number names its database, so that sessions side by side do not meet; the lock that
    holds the number goes with the process, however it ends."""

    def __init__(self) -> None:
        make_folder(DATA.parent)
        with _gate():
            number, self._lock = next((n, lock) for n in NUMBERS if (lock := _lock(n)))
            os.environ.setdefault(DATABASE_NAME, "test_punctual" + (f"_{number}" if number > 1 else ""))
            embedded.start(DATA, durable=False, programs=programs())

    def close(self) -> None:
        """Stop the server unless another session uses it."""
        with _gate():
            self._lock.close()
            if all(_is_free(n) for n in NUMBERS):
                embedded.stop(DATA)


def _file(name: object) -> Path:
    return DATA.with_name(f"{DATA.name}.session-{name}")


def _lock(number: int) -> IO[str] | None:
    file = _file(number).open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _is_free(number: int) -> bool:
    if not _file(number).exists():
        return True
    lock = _lock(number)
    if lock:
        lock.close()
    return lock is not None


@contextmanager
def _gate() -> Iterator[None]:
    """Sessions come and go one at a time."""
    with _file("gate").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
