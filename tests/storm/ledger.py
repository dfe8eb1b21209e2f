"""The run ledger: a file to which handlers append what they do, whatever happens to the database. One machine, so boot
time is the clock of all of it: it is the same in every process and no clock step touches it."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from jobs.clock import boottime
from jobs.context import Context
from jobs.errors import Cancelled, Snooze

START, END, ERROR, SNOOZE, STOP = "start", "end", "error", "snooze", "stop"
VARIABLE = "STORM_LEDGER"


@dataclass(frozen=True, slots=True)
class Line:
    job_id: UUID
    attempt: int
    max_attempts: int
    event: str
    pid: int
    at: float
    job_type: str
    tenant: str
    queue: str

    def __str__(self) -> str:
        return (
            f"{self.job_id} {self.attempt} {self.max_attempts} {self.event} {self.pid} {self.at:.6f} "
            f"{self.job_type} {self.tenant} {self.queue}"
        )

    @classmethod
    def parse(cls, text: str) -> Line:
        job_id, attempt, most, event, pid, at, job_type, tenant, queue = text.split()
        return cls(UUID(job_id), int(attempt), int(most), event, int(pid), float(at), job_type, tenant, queue)


class Ledger:
    """Reads what has been added since the last look."""

    def __init__(self, file: Path) -> None:
        self.file, self.lines = file, list[Line]()
        self._read = 0

    def read(self) -> list[Line]:
        if self.file.exists():
            with self.file.open("rb") as file:
                file.seek(self._read)
                whole = file.read().rpartition(b"\n")[0]
            if whole:
                self._read += len(whole) + 1
                self.lines += [Line.parse(line) for line in whole.decode().splitlines()]
        return self.lines


def write(file: Path, line: Line) -> None:
    """By one write to the end of the file: whole, whatever other processes write and however this one ends."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def noted(handler: Callable[..., Any]) -> Callable[..., Any]:
    """The handler, with a line when a run starts and one for how it ended; a run that was cut off has only the first."""

    @functools.wraps(handler)
    def run(context: Context, **payload: Any) -> Any:
        _note(context, START)
        try:
            value = handler(context, **payload)
        except Snooze:
            _note(context, SNOOZE)
            raise
        except Cancelled:
            _note(context, STOP)
            raise
        except BaseException:
            _note(context, ERROR)
            raise
        _note(context, END)
        return value

    return run


def _note(context: Context, event: str) -> None:
    line = Line(
        context.job_id,
        context.attempt,
        context.max_attempts,
        event,
        os.getpid(),
        boottime(),
        context.job_type,
        context.tenant,
        context.queue,
    )
    write(Path(os.environ[VARIABLE]), line)
