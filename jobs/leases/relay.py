"""Relay: a tenant at its limit whose job has completed starts its next one in the same place: settled and claimed by one
statement, where a settle, a lock and a claim that counts would be three in two transactions.

Only what is certain to change nothing for others: no tenant that may be claimed for waits for the thread, and what
runs does not become more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg

from jobs import arrays
from jobs.leases.claim import Claimer
from jobs.leases.ring import NIL, just_before
from jobs.leases.settle import COMPLETED, Settled
from jobs.partitions import day_of
from jobs.results import DONE, Claim, Held, Settlement
from jobs.sql import for_day

Connection = psycopg.Connection[Any]


class Relayed(NamedTuple):
    settled: Settled
    """Of those that were still ours; the others are left to a settle, which finds out what became of them."""
    claims: list[Claim]


def may_end_in_relay(settlement: Settlement) -> bool:
    """It is of those that the lean statement writes, and no other waits for its concurrency key."""
    return settlement.held.key is None and settlement.result == DONE


def may_relay(claimer: Claimer, tenant_id: int, ended: Sequence[Settlement]) -> bool:
    """This tenant is passed over for its own limit alone, nobody else waits for a thread, no strangers lie among what is
    due, and all that has ended was due today."""
    count = claimer.counts.of.get(tenant_id)
    today = day_of(claimer.looks.clock.now())
    return (
        tenant_id in claimer.passed.full
        and not claimer.greedy
        and not claimer.draining
        and not claimer.line.strangers
        and claimer.counts.queue is None
        and claimer.door.shut_for is None
        and count is not None
        and count.fresh
        and today != claimer.missing_day
        and all(day_of(settlement.held.due_at) == today for settlement in ended)
    )


def relay(
    connection: Connection, claimer: Claimer, tenant_id: int, ended: Sequence[Settlement]
) -> Relayed | None:
    """Settle these jobs of one tenant and queue, and claim up to as many of its entries. None when today's leaves are
    missing. Errors of the database leave nothing written."""
    ended = sorted(ended, key=lambda settlement: settlement.held.job_id.int)
    pairs = claimer.ring.pairs_of(tenant_id)
    claimer.ring.touched.update(pairs)
    marks = [claimer.ring.marks[pair] for pair in pairs]
    count, token = claimer.counts.of[tenant_id], uuid4()
    count.relayed()
    values = {
        "queue": claimer.queue,
        "process_id": claimer.process_id,
        "types": claimer.types,
        "tenant_id": tenant_id,
        "oldest": count.oldest,
        "token": token,
        "ids": arrays.uuids([settlement.held.job_id for settlement in ended]),
        "tokens": arrays.uuids([settlement.held.lease_token for settlement in ended]),
        "started_ats": arrays.timestamps([settlement.started_at for settlement in ended]),
        "priorities": arrays.int8s([priority for _, priority in pairs]),
        "run_ats": arrays.timestamps([run_at for run_at, _ in marks]),
        "job_ids": arrays.uuids([job_id for _, job_id in marks]),
    }
    day = day_of(ended[0].held.due_at)  # of all; not asked of the clock again: a new day may have begun
    try:
        rows = connection.execute(for_day("relay", day), values, binary=True, prepare=True).fetchall()
    except psycopg.errors.UndefinedTable:
        claimer.missing_day = day
        return None
    gone = set(rows[0][0] or ())
    mine = [settlement for settlement in ended if settlement.held.job_id in gone]
    settled = Settled(mine, dict.fromkeys(gone, COMPLETED))
    return Relayed(settled, _learn(claimer, tenant_id, token, rows))


def _learn(claimer: Claimer, tenant_id: int, token: UUID, rows: Sequence[tuple[Any, ...]]) -> list[Claim]:
    """Move the marks on; what was picked and not taken is still there."""
    _, moment, now, slug, allowed, *_ = rows[0]
    claimer.looks.clock.observe(moment)
    claims, stuck = list[Claim](), set[int]()
    for _, _, _, _, _, priority, run_at, job_id, taken, *rest in rows:
        if job_id is None or priority in stuck:
            continue
        mark = (run_at, job_id) if taken else just_before(run_at, job_id)
        claimer.ring.advance((tenant_id, priority), min(mark, (now, NIL)))
        if not taken:
            stuck.add(priority)
            continue
        kind, attempt, most, crashes, group, key, payload = rest
        name = None if key is None else (tenant_id, key)
        held = Held(job_id, token, claimer.process_id, kind, attempt, most, crashes, name)
        claims.append(Claim(held, tenant_id, slug, claimer.queue, priority, run_at, group, True, payload))
    if len(claims) + len(stuck) < (allowed or 0):
        for pair in claimer.ring.pairs_of(tenant_id):
            if pair[1] not in stuck:
                claimer.ring.exhausted(pair)
    return claims
