"""The ledger's lines as runs: one attempt in one process, from its start to however it ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from tests.storm.ledger import END, START, Line


@dataclass(slots=True)
class Run:
    job_id: UUID
    job_type: str
    tenant: str
    queue: str
    attempt: int
    max_attempts: int
    pid: int
    start: float
    end: float | None = None
    how: str | None = None
    """The event of its last line; None: it was cut off."""

    @property
    def finished(self) -> bool:
        return self.how == END


def runs_of(lines: Iterable[Line]) -> dict[UUID, list[Run]]:
    """The runs of each job, in the order in which they started."""
    found: dict[UUID, list[Run]] = defaultdict(list)
    running: dict[tuple[UUID, int, int], Run] = {}
    for line in sorted(lines, key=lambda line: line.at):
        key = (line.job_id, line.attempt, line.pid)
        if line.event == START:
            run = running[key] = Run(
                line.job_id,
                line.job_type,
                line.tenant,
                line.queue,
                line.attempt,
                line.max_attempts,
                line.pid,
                line.at,
            )
            found[line.job_id].append(run)
        elif run_found := running.pop(key, None):
            run_found.end, run_found.how = line.at, line.event
    return dict(found)
