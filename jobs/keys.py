"""Unique keys: at most one live job per (tenant, job type, key)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import OperationalError, connections, transaction

from jobs.conf import conf
from jobs.errors import LockTimeout, PlaceUnknown
from jobs.ids import dues_of
from jobs.sql import load

TRIES = 5
Name = tuple[int, str, str]
"""(tenant id, job type, key)"""


@dataclass(frozen=True, slots=True)
class Wanted:
    name: Name
    job_id: UUID
    lifetime: timedelta | None
    """None: until the job has ended."""


def take(wanted: Iterable[Wanted], using: str, *, vanished: bool = True) -> dict[Name, UUID]:
    """Take each key or learn who holds it: name -> the job that has it now. Of two jobs in one call that want the
    same key, the first gets it. Runs in the caller's transaction and never aborts it by a conflict. `vanished`: see
    whether the holders are there still; a key whose job has no row any more is free."""
    left: dict[Name, Wanted] = {}
    for want in wanted:
        left.setdefault(want.name, want)
    holders: dict[Name, UUID] = {}
    with connections[using].cursor() as cursor, _lock_timeout(cursor, using):
        for _ in range(TRIES):
            if not left:
                return holders
            todo = [left[name] for name in sorted(left)]
            won = _execute(cursor, "take_keys", todo)
            if taken := [want for want in todo if want.job_id not in won]:
                won |= _execute(cursor, "take_over_keys", taken)
            holders |= {want.name: want.job_id for want in todo if want.job_id in won}
            held = _holders(cursor, [want.name for want in todo if want.job_id not in won])
            gone = _free_vanished(cursor, set(held.values())) if vanished else set()
            holders |= {name: job_id for name, job_id in held.items() if job_id not in gone}
            left = {name: want for name, want in left.items() if name not in holders}
    if left:
        raise PlaceUnknown(
            f"unique keys changed hands {TRIES} times while they were asked for: {sorted(left)[:3]}"
        )
    return holders


def _execute(cursor: Any, statement: str, wanted: list[Wanted]) -> set[UUID]:
    cursor.execute(
        load(statement),
        {
            "tenant_ids": [want.name[0] for want in wanted],
            "job_types": [want.name[1] for want in wanted],
            "keys": [want.name[2] for want in wanted],
            "ids": [want.job_id for want in wanted],
            "lifetimes": [want.lifetime for want in wanted],
        },
    )
    return {job_id for (job_id,) in cursor.fetchall()}


def _holders(cursor: Any, names: list[Name]) -> dict[Name, UUID]:
    if not names:
        return {}
    cursor.execute(
        "SELECT k.tenant_id, k.job_type, k.key, k.job_id FROM jobs_uniquekey k "
        "JOIN unnest(%s::bigint[], %s::text[], %s::text[]) n(tenant_id, job_type, key) USING (tenant_id, job_type, key) "
        "WHERE k.expires_at IS NULL OR k.expires_at > clock_timestamp()",
        [list(column) for column in zip(*names, strict=True)],
    )
    return {(tenant_id, job_type, key): job_id for tenant_id, job_type, key, job_id in cursor.fetchall()}


def _free_vanished(cursor: Any, held_by: set[UUID]) -> set[UUID]:
    """Free the keys of jobs without a row, whose days were dropped by hand or under a shorter retention, and return these
    jobs: nobody could be told of them, and nothing would ever end them."""
    if not held_by:
        return set()
    cursor.execute(
        "SELECT id FROM jobs_job WHERE id = ANY(%(ids)s::uuid[]) AND due_at = ANY(%(dues)s::timestamptz[])",
        {"ids": list(held_by), "dues": dues_of(held_by)},
    )
    gone = held_by - {job_id for (job_id,) in cursor.fetchall()}
    if gone:
        cursor.execute("DELETE FROM jobs_uniquekey WHERE job_id = ANY(%s::uuid[])", [list(gone)])
    return gone


@contextmanager
def _lock_timeout(cursor: Any, using: str) -> Iterator[None]:
    """Bound the wait for a concurrent caller, when the settings ask for it; without a bound no savepoint is spent."""
    limit = conf().schedule_lock_timeout
    if limit is None:
        yield
        return
    try:
        with transaction.atomic(using):
            cursor.execute("SELECT current_setting('lock_timeout')")
            (before,) = cursor.fetchone()
            cursor.execute(
                "SELECT set_config('lock_timeout', %s, true)", [f"{int(limit.total_seconds() * 1000)}ms"]
            )
            yield
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [before])
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != "55P03":
            raise
        raise LockTimeout(
            f"a concurrent transaction has held the same unique key for {limit} (SCHEDULER['schedule_lock_timeout'])"
        ) from error
