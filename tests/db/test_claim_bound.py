"""The guarantee: how soon a tenant with one job is served, whatever the others have waiting."""

from __future__ import annotations

import math
from typing import Any

import psycopg
import pytest

from jobs.clock import DatabaseClock
from jobs.leases import Claimer, Looks
from jobs.models import Tenant
from jobs.registry import registry
from tests.db.test_claim_fairness import backlog, by_tenant
from tests.factories import process

Connection = psycopg.Connection[Any]


@pytest.mark.parametrize(("batch", "weight"), [(4, 1), (8, 1), (8, 3), (50, 1)])
def test_a_tenant_with_one_job_is_served_within_the_bound(here: Connection, batch: int, weight: int) -> None:
    """By four claimers, each beginning where it likes: each of them within so many claims of its own, had it been the
    only one to come to it."""
    tenant = backlog(here, {**{f"large {n}": 40 for n in range(12)}, "quiet": 1})
    Tenant.objects.exclude(slug="quiet").update(weight=weight)
    bound = math.ceil((12 * weight + 1) / batch) + 1
    claimers = [Claimer("test.noop", process(here), registry.names()) for _ in range(4)]
    for turn in range(bound):
        taken = [each for mine in claimers for each in mine.claim(here, batch, batch)]
        if by_tenant(taken)[tenant["quiet"]]:
            return
        assert taken, turn
    raise AssertionError(f"it was not served within {bound} claims of each of four")


def test_each_of_fifty_queues_is_served_in_turn(here: Connection) -> None:
    """One claimer for each, sharing their looks as in a worker; a large backlog in the first holds up none."""
    queues = [f"q{n}" for n in range(50)]
    for n, queue in enumerate(queues):
        backlog(here, {"a": 30 if n == 0 else 1}, queue=queue)
    looks = Looks(queues, registry.names(), clock=DatabaseClock())
    worker = process(here)
    claimers = [Claimer(queue, worker, registry.names(), looks=looks) for queue in queues]
    taken = [each for mine in claimers for each in mine.claim(here, 5, 5)]
    assert {each.queue for each in taken} == set(queues)


def test_claimers_do_not_all_begin_with_the_same_tenant(here: Connection) -> None:
    backlog(here, {f"t{n}": 20 for n in range(16)})
    first = set()
    for _ in range(24):
        mine = Claimer("test.noop", process(here), registry.names())
        first |= {each.tenant_id for each in mine.claim(here, 1, 1)}
    assert len(first) > 4
