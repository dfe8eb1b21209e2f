"""Scan: the jobs of a query from one id on, in the order of their due times; for whoever works through all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from jobs.ids import ceil_ms, due_of, first_id
from jobs.search.compile import Query
from jobs.search.find import Walk
from jobs.search.guard import TooSlow


class Scanned(NamedTuple):
    ids: Sequence[UUID]
    cursor: UUID | None
    """Where to go on; None: there is no more."""


def scan(query: Query, after: UUID | None, limit: int, using: str = "default") -> Scanned:
    """Up to `limit` ids behind `after`. None of them may mean that only a part could be looked at in time: then the
    cursor has moved on. TooSlow when not even that was possible."""
    place = (due_of(after), after) if after else None
    walk = Walk(query, place, limit, using, up=True, by_end=False)
    ids = [job_id for _, job_id in walk.run()]
    if len(ids) == limit:
        return Scanned(ids, ids[-1])
    if walk.back_to is None:
        return Scanned(ids, None)
    cursor = UUID(int=first_id(ceil_ms(walk.back_to)).int - 1)
    if after and cursor <= after and not ids:
        raise TooSlow
    return Scanned(ids, max([cursor, *ids]))
