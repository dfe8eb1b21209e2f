"""Fetch: what was asked for, for claims that their own statement did not bring it for: those due on another day than
today, and large ones. After the claim's commit, from each day's leaf by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from typing import Any
from uuid import UUID

import psycopg

from jobs import arrays
from jobs.conf import conf
from jobs.ids import day_of_id
from jobs.results import Claim
from jobs.session import bounded
from jobs.sql import for_day

Connection = psycopg.Connection[Any]


def fetch(
    connection: Connection, claims: Sequence[Claim], room: int | None = None
) -> tuple[list[Claim], list[Claim]]:
    """The claims with their payloads, and those whose job row could not be read: never a failure of the job, to be
    released and reported. `room`: once so many characters of payload are there the other claims come without, but for the first
    few; None: all of them, however much that is."""
    days: dict[date, list[Claim]] = defaultdict(list)
    for claim in claims:
        if claim.payload is None:
            days[day_of_id(claim.held.job_id)].append(claim)
    if not days:
        return list(claims), []
    found: dict[UUID, str | None] = {}
    for day, some in days.items():
        size = len(some) if room is None else max(1, room // 4 // conf().payload_bytes)
        while some and (room is None or room > 0 or not found):
            piece, some = some[:size], some[size:]
            brought = _bring(connection, day, piece)
            found |= {claim.held.job_id: brought.get(claim.held.job_id) for claim in piece}
            if room is not None:
                taken = sum(map(len, brought.values()))
                room -= taken
                size = max(1, room * len(piece) // (4 * max(1, taken)))
    full, missing = list[Claim](), list[Claim]()
    for claim in claims:
        if claim.payload is None and claim.held.job_id in found:
            claim = claim._replace(payload=found[claim.held.job_id])
            (missing if claim.payload is None else full).append(claim)
        else:
            full.append(claim)
    return full, missing


def _bring(connection: Connection, day: date, some: Sequence[Claim]) -> dict[UUID, str]:
    values = {
        "dues": arrays.timestamps([claim.held.due_at for claim in some]),
        "ids": arrays.uuids([claim.held.job_id for claim in some]),
    }
    try:
        with bounded(connection):
            return dict(connection.execute(for_day("payloads", day), values, binary=True).fetchall())
    except (
        psycopg.errors.UndefinedTable,
        psycopg.errors.LockNotAvailable,
    ):  # dropped by hand, or locked by somebody
        return {}
