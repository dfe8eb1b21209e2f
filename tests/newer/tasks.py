"""The next version of the sibling app: a job type that older workers do not know."""

from __future__ import annotations

from jobs.context import Context
from jobs.registry import job_type
from tests.handlers.tasks import note


@job_type("test.newer", queue="test.noop")
def newer(context: Context, ledger: str) -> None:
    note(ledger, context, "start")
