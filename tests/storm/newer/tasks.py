"""A job type that workers with the old code do not know, in a queue that they serve."""

from __future__ import annotations

from jobs.context import Context
from jobs.registry import job_type
from tests.storm.ledger import noted
from tests.storm.tasks import SHORT, work


@job_type("storm.newer", queue=SHORT)
@noted
def newer(context: Context, number: int, seconds: float) -> None:
    work(context, seconds)
