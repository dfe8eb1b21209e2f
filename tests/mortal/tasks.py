"""A sibling app whose bodies kill the worker process they run in."""

from __future__ import annotations

from pathlib import Path

from django.db import connection

from jobs.context import Context
from jobs.registry import job_type
from tests.handlers.tasks import SOON, note
from tests.killing import die_at


@job_type("test.mortal", atomic=True, backoff=SOON)
def mortal(context: Context, ledger: str, number: int, epitaph: str, sent: bool) -> None:
    """Its first attempt dies at a round trip of this body, or of what follows it; each attempt has an effect of its own
    name."""
    note(ledger, context, "start")
    if context.attempt == 1:
        die_at(number, Path(epitaph), sent=sent)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 'before the effect'")
        cursor.execute("INSERT INTO jobs_queue (name) VALUES (%s)", [f"{context.job_id} {context.attempt}"])
