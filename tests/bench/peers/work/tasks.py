"""The handler."""

from __future__ import annotations

from jobs.context import Context
from jobs.registry import job_type
from tests.bench.peers.adapters.record import record
from tests.bench.peers.work import RECORD


@job_type(RECORD)
def record_job(context: Context, number: int, due: float, text: str) -> None:
    record(number, due, text)
