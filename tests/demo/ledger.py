"""The ledger: a file to which the handlers append what they do. The scheduler knows nothing of it."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from jobs.context import Context

START, END, ERROR = "start", "end", "error"


@dataclass(frozen=True, slots=True)
class Line:
    job_id: UUID
    attempt: int
    event: str
    pid: int
    at: float
    job_type: str
    due_at: datetime

    @property
    def run(self) -> tuple[UUID, int, int]:
        """Whose line it is: one attempt in one process."""
        return self.job_id, self.attempt, self.pid

    def __str__(self) -> str:
        due_at = self.due_at.isoformat()
        return f"{self.job_id} {self.attempt} {self.event} {self.pid} {self.at:.6f} {self.job_type} {due_at}"

    @classmethod
    def parse(cls, text: str) -> Line:
        job_id, attempt, event, pid, at, job_type, due_at = text.split()
        return cls(
            UUID(job_id),
            int(attempt),
            event,
            int(pid),
            float(at),
            job_type,
            datetime.fromisoformat(due_at),
        )


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
    """The handler, each run of it in the ledger: when it starts, and when it has ended or failed."""

    @functools.wraps(handler)
    def run(context: Context, *args: Any, **payload: Any) -> Any:
        _note(context, START)
        try:
            value = handler(context, *args, **payload)
        except BaseException:
            _note(context, ERROR)
            raise
        _note(context, END)
        return value

    return run


def _note(context: Context, event: str) -> None:
    line = Line(
        context.job_id, context.attempt, event, os.getpid(), time.time(), context.job_type, context.due_at
    )
    write(Path(os.environ["DEMO_LEDGER"]), line)
