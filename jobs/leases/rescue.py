"""Rescue: deal with claims whose process is gone, in one transaction under their locks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg

from jobs.leases.claim import SUSPECT
from jobs.leases.settle import Settled, settle
from jobs.registry import registry
from jobs.results import Failed, Held, Released, Result, Settlement
from jobs.retry import default_backoff
from jobs.sql import load
from jobs.text import ErrorText

Connection = psycopg.Connection[Any]

BATCH = 500


def rescue(connection: Connection, limit: int = BATCH) -> Settled:
    """Entries whose process is missing or expired. Nobody knows which bodies had started: an entry on its last
    attempt, and a suspect, which runs in a process of its own (neither is ever claimed ahead), count as run; others
    are released uncounted. Each with one crash more."""
    error = ErrorText("WorkerLost", "its process stopped renewing its lease", "", "WorkerLost")

    def judge(held: Held) -> Result:
        if held.attempt >= held.max_attempts or held.crashes >= SUSPECT:
            return _failed(held, error)
        return Released(crashed=True)

    return _settle_found(connection, "orphans", {"limit": limit}, judge)


def rescue_process(
    connection: Connection,
    process_id: int,
    started: Collection[UUID],
    error: ErrorText,
    *,
    late: Collection[UUID] = (),
) -> Settled:
    """What a dead child held, by its supervisor, who knows which jobs had `started`. When it was
    killed for the `late` ones, only those are counted; the others are released."""
    guilty = set(late) or set(started)

    def judge(held: Held) -> Result:
        if held.job_id in guilty:
            return _failed(held, error, crashed=not late)
        return Released()

    return _settle_found(connection, "claims_of", {"process_id": process_id, "limit": BATCH}, judge)


def _settle_found(
    connection: Connection, statement: str, values: dict[str, Any], judge: Callable[[Held], Result]
) -> Settled:
    with connection.transaction():
        rows = connection.execute(load(statement), values).fetchall()
        holdings = [
            Held(job_id, due_at, token, process_id, kind, attempt, most, crashes)
            for job_id, due_at, token, process_id, kind, attempt, most, crashes in rows
        ]
        return settle(connection, [Settlement(held, judge(held), None) for held in holdings])


def _failed(held: Held, error: ErrorText, *, crashed: bool = True) -> Failed:
    known = registry.get(held.job_type)
    backoff = known.backoff if known else default_backoff()
    return Failed(error, after=backoff.delay(held.attempt) or timedelta(), crashed=crashed)
