"""Rescue: deal with claims whose process is gone, in one transaction under their locks."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

import psycopg

from jobs.db import BROKEN, INFRASTRUCTURE
from jobs.ids import day_of_id
from jobs.leases.claim import SUSPECT
from jobs.leases.settle import Settled, settle
from jobs.registry import registry
from jobs.results import Failed, Held, Released, Result, Settlement
from jobs.retry import default_backoff
from jobs.sql import load
from jobs.text import ErrorText

Connection = psycopg.Connection[Any]

logger = logging.getLogger(__name__)

BATCH = 500


def rescue(connection: Connection, limit: int = BATCH) -> Settled:
    """Entries whose process is missing or expired. Nobody knows which bodies had started: an entry on its last
    attempt, and a suspect, which runs in a process of its own (neither is ever claimed ahead), count as run; others
    are released uncounted. Each with one crash more."""
    if connection.execute(load("orphans"), {"limit": 1}, prepare=True).fetchone() is None:
        return Settled()  # most often: one round trip
    error = ErrorText("WorkerLost", "its process stopped renewing its lease", "", "WorkerLost")

    def judge(held: Held) -> Result:
        if held.attempt >= held.max_attempts or held.crashes >= SUSPECT:
            return _failed(held, error, crashed=True)
        return Released(crashed=True)

    return _settle_found(connection, "orphans", {"limit": limit}, judge)


@dataclass(frozen=True, kw_only=True)
class Autopsy:
    """What a dead process was doing, by job, and what it is said to have died of."""

    error: ErrorText
    guilty: frozenset[UUID] = frozenset()
    """Bodies to blame: counted, with one crash more unless `crashed` is False."""
    ended: frozenset[UUID] = frozenset()
    """Bodies that had returned, their results unwritten: counted, not blamed."""
    crashed: bool = True


def rescue_process(connection: Connection, process_id: int, autopsy: Autopsy) -> Settled:
    """Up to 500 of what a dead child held, by its supervisor, who knows. The rest of its claims is released."""
    unwritten = ErrorText(
        "WorkerCrashed", "the process ended before this result was written", "", "unwritten"
    )

    def judge(held: Held) -> Result:
        if held.job_id in autopsy.guilty:
            return _failed(held, autopsy.error, crashed=autopsy.crashed)
        if held.job_id in autopsy.ended:
            return _failed(held, unwritten, crashed=False)
        return Released()

    return _settle_found(connection, "claims_of", {"process_id": process_id, "limit": BATCH}, judge)


def _settle_found(
    connection: Connection, statement: str, values: dict[str, Any], judge: Callable[[Held], Result]
) -> Settled:
    with connection.transaction():
        rows = connection.execute(load(statement), values, prepare=True).fetchall()
        batch = [Settlement(held, judge(held), None) for held in (Held.of(row) for row in rows)]
        return _settle_each(connection, batch)


def _settle_each(connection: Connection, batch: list[Settlement]) -> Settled:
    """One that cannot be written (its day was dropped by hand) is found by halving, told, and left until it can."""
    try:
        with connection.transaction():
            return settle(connection, batch)
    except psycopg.errors.LockNotAvailable:
        return _settle_by_day(connection, batch)
    except psycopg.Error as error:
        if isinstance(error, INFRASTRUCTURE) and not isinstance(error, BROKEN):
            raise
        if len(batch) == 1:
            told = {"job": str(batch[0].held.job_id), "error": " ".join(str(error).split())}
            logger.error("a lost claim cannot be given back: run checkjobs", extra=told)
            return Settled()
    middle = len(batch) // 2
    return _settle_each(connection, batch[:middle]) | _settle_each(connection, batch[middle:])


def _settle_by_day(connection: Connection, batch: list[Settlement]) -> Settled:
    """Somebody has locked a day. What is written there waits for him; what goes back to its queue is written nowhere else."""
    parts: dict[tuple[date, bool], list[Settlement]] = defaultdict(list)
    for each in batch:
        parts[day_of_id(each.held.job_id), isinstance(each.result, Released)].append(each)
    if len(parts) > 1:
        return reduce(or_, (_settle_each(connection, some) for some in parts.values()))
    ((day, _),) = parts
    told = {"day": day.isoformat(), "jobs": len(batch)}
    logger.warning("a day is locked: lost claims of it wait", extra=told)
    return Settled()


def _failed(held: Held, error: ErrorText, *, crashed: bool) -> Failed:
    known = registry.get(held.job_type)
    backoff = known.backoff if known else default_backoff()
    return Failed(error, after=backoff.delay(held.attempt), crashed=crashed)
