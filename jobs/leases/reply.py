"""The reply of a claim: what was taken, how far each pair was read, and what it says of its tenants and of the queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from jobs.leases.ring import Mark, Pair, just_before
from jobs.results import Claim, Held


class Room(NamedTuple):
    """What a claim tells of its queue."""

    size: int
    """What there was room for; -1: our own lease has ended."""
    limited: bool
    draining: bool
    """Everything or the queue was held and comes back at a given rate."""
    oldest: int
    """The oldest claim that was counted; 0: none was."""
    wait: float | None
    """Without room, the seconds until it is worth another try; None: until a job ends."""
    noisy_share: float | None
    moment: Any
    now: Any


class Told(NamedTuple):
    """What a claim tells of one of its tenants."""

    tenant_id: int
    allowed: int
    """How many could have been taken."""
    held: bool
    """Its row was locked by this claim."""
    limited: bool
    weight: int | None
    """None when its row is gone."""
    oldest: int
    """The oldest claim that was counted; 0: none was."""
    slug: str | None
    wait: float | None
    """Seconds until more are allowed; None: until one of its jobs ends."""
    exempt: bool | None
    """It may hold all threads."""


@dataclass(slots=True)
class Reply:
    room: Room
    claims: list[Claim] = field(default_factory=list)
    told: dict[int, Told] = field(default_factory=dict)
    seen: Counter[int] = field(default_factory=Counter)
    """How many entries of each tenant were picked."""
    marks: dict[Pair, Mark] = field(default_factory=dict)
    """How far each pair was read: to what was taken last, or to before the first that was picked and not taken."""
    stuck: set[Pair] = field(default_factory=set)
    """Pairs with an entry that was picked and not taken."""


def read(rows: Sequence[tuple[Any, ...]], queue: str, process_id: int, token: UUID) -> Reply:
    """Of each tenant there is at least one row, and the first row tells of the queue."""
    reply = Reply(Room(*rows[0][9]))
    claims, told, seen, marks, stuck = reply.claims, reply.told, reply.seen, reply.marks, reply.stuck
    clean, under_limit = True, reply.room.limited or reply.room.draining
    for row in rows:
        tenant_id, priority, run_at, job_id, taken = row[0], *row[10:14]
        if tenant_id not in told:
            told[tenant_id] = Told(*row[:9])
        if job_id is None:
            continue
        seen[tenant_id] += 1
        pair = (tenant_id, priority)
        if clean or pair not in stuck:
            marks[pair] = (run_at, job_id) if taken else just_before(run_at, job_id)
        if not taken:
            clean = False
            stuck.add(pair)
            continue
        kind, attempt, most, crashes, group, key, payload = row[14:]
        name = None if key is None else (tenant_id, key)
        held = Held(job_id, token, process_id, kind, attempt, most, crashes, name)
        limited = row[3] or under_limit or name is not None
        slug = row[6] or str(tenant_id)
        claims.append(Claim(held, tenant_id, slug, queue, priority, run_at, group, limited, payload))
    return reply
