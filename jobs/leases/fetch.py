"""Fetch: what was asked for, for claims that their own statement did not find it for: those due on another day than
today. After the claim's commit, from each day's leaf by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from typing import Any
from uuid import UUID

import psycopg

from jobs import arrays
from jobs.ids import day_of_id
from jobs.results import Claim
from jobs.sql import for_day

Connection = psycopg.Connection[Any]


def fetch(connection: Connection, claims: Sequence[Claim]) -> tuple[list[Claim], list[Claim]]:
    """The claims with their payloads, and those whose job row was not found: never a failure of the job, to be released
    and reported."""
    days: dict[date, list[Claim]] = defaultdict(list)
    for claim in claims:
        if claim.payload is None:
            days[day_of_id(claim.held.job_id)].append(claim)
    if not days:
        return list(claims), []
    found: dict[UUID, str] = {}
    for day, some in days.items():
        values = {
            "dues": arrays.timestamps([claim.held.due_at for claim in some]),
            "ids": arrays.uuids([claim.held.job_id for claim in some]),
        }
        try:
            found |= dict(connection.execute(for_day("payloads", day), values, binary=True).fetchall())
        except psycopg.errors.UndefinedTable:  # the day was dropped by hand
            continue
    full = [
        claim if claim.payload is not None else claim._replace(payload=found.get(claim.held.job_id))
        for claim in claims
    ]
    return [claim for claim in full if claim.payload is not None], [c for c in full if c.payload is None]
