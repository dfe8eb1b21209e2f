"""Fetch: what was asked for, for entries that were claimed. After the claim's commit, from each day's leaf by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from typing import Any
from uuid import UUID

import psycopg

from jobs.leases.claim import Taken
from jobs.partitions import day_of
from jobs.results import Claim
from jobs.sql import for_day

Connection = psycopg.Connection[Any]


def fetch(connection: Connection, queue: str, taken: Sequence[Taken]) -> tuple[list[Claim], list[Taken]]:
    """The claims, and those whose job row was not found: never a failure of the job, to be released and reported."""
    found: dict[UUID, tuple[dict[str, Any], str | None]] = {}
    days: dict[date, list[Taken]] = defaultdict(list)
    for each in taken:
        days[day_of(each.held.due_at)].append(each)
    for day, some in days.items():
        try:
            rows = connection.execute(
                for_day("payloads", day),
                {"dues": [each.held.due_at for each in some], "ids": [each.held.job_id for each in some]},
            ).fetchall()
        except psycopg.errors.UndefinedTable:  # the day was dropped by hand
            continue
        found.update((job_id, (payload, slug)) for job_id, payload, slug in rows)
    claims = [
        Claim(
            each.held,
            each.tenant_id,
            found[each.held.job_id][1] or str(each.tenant_id),
            queue,
            each.priority,
            each.group,
            each.limited,
            found[each.held.job_id][0],
        )
        for each in taken
        if each.held.job_id in found
    ]
    return claims, [each for each in taken if each.held.job_id not in found]
