"""Limits of one tenant in one queue, and limits for a time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from jobs.leases import Claimer, settle
from jobs.models import Queue, QueueEntry, Tenant, TenantQueueLimit
from jobs.results import Completed, Settlement
from tests.db.test_claim_limits import backlog, claimer, limit_tenant
from tests.factories import server_time

Connection = psycopg.Connection[Any]


def limit(tenant_id: int, most: int, queue: str = "q") -> TenantQueueLimit:
    made: TenantQueueLimit = TenantQueueLimit.objects.create(
        tenant_id=tenant_id, queue=queue, max_running=most
    )
    return made


def drain(here: Connection, mine: Claimer, times: int = 6) -> int:
    return sum(len(mine.claim(here, 4, 4)) for _ in range(times))


@pytest.mark.parametrize("most", [0, 1, 4])
def test_no_more_of_a_tenant_run_in_a_queue_than_its_limit_there(here: Connection, most: int) -> None:
    limit(backlog(here, 8), most)
    other = backlog(here, 3, tenant="other")
    taken = [each for mine in [claimer(here)] for _ in range(6) for each in mine.claim(here, 4, 4)]
    assert sum(each.tenant_id == other for each in taken) == 3
    assert len(taken) == most + 3
    assert all(each.limited == (each.tenant_id != other) for each in taken)


def test_it_says_nothing_of_other_queues(here: Connection) -> None:
    limit(backlog(here, 5), 1)
    backlog(here, 5, queue="r")
    assert drain(here, claimer(here)) == 1
    assert drain(here, claimer(here, "r")) == 5


def test_what_runs_in_other_queues_does_not_count(here: Connection) -> None:
    backlog(here, 5, queue="r")
    assert drain(here, claimer(here, "r")) == 5
    limit(backlog(here, 5), 2)
    assert drain(here, claimer(here)) == 2


@pytest.mark.parametrize(("of_tenant", "of_pair", "of_queue"), [(1, 3, 4), (4, 2, 5), (6, 5, 3)])
def test_of_all_limits_the_lowest_holds(
    here: Connection, of_tenant: int, of_pair: int, of_queue: int
) -> None:
    tenant = backlog(here, 8)
    limit_tenant(tenant, of_tenant)
    limit(tenant, of_pair)
    Queue.objects.create(name="q", max_running=of_queue)
    assert drain(here, claimer(here)) == min(of_tenant, of_pair, of_queue)


def test_the_tenants_limit_counts_what_runs_in_all_queues_beside_a_limit_in_one(here: Connection) -> None:
    tenant = backlog(here, 8)
    backlog(here, 8, queue="r")
    limit_tenant(tenant, 5)
    limit(tenant, 4)
    assert drain(here, claimer(here, "r"), 1) == 4
    assert drain(here, claimer(here)) == 1


def test_a_slot_that_becomes_free_is_given_again(here: Connection) -> None:
    tenant = backlog(here, 5)
    limit(tenant, 1)
    mine = claimer(here)
    for _ in range(3):
        (taken,) = mine.claim(here, 4, 4)
        assert mine.claim(here, 4, 4) == []
        settle(here, [Settlement(taken.held, Completed(), None)])
        mine.settled(tenant)


def test_a_limit_that_was_raised_lowered_or_lifted_binds_the_next_claims(here: Connection) -> None:
    tenant = backlog(here, 9)
    row = limit(tenant, 1)
    running = 0
    for most, more in ((1, 1), (3, 2), (2, 0)):
        row.max_running = most
        row.save()
        running += more
        assert drain(here, claimer(here)) == more
        assert QueueEntry.objects.filter(lease_token__isnull=False).count() == running
    row.delete()
    assert drain(here, claimer(here)) == 6


def test_a_look_tells_of_a_limit_in_one_queue(here: Connection) -> None:
    tenant = backlog(here, 5)
    limit(tenant, 2)
    mine = claimer(here)
    mine.looks.look(here)
    assert mine.ring.limited == {tenant}
    elsewhere = claimer(here, "r")
    backlog(here, 1, queue="r")
    elsewhere.looks.look(here)
    assert elsewhere.ring.limited == set()


@pytest.mark.parametrize(
    ("standing", "temporary", "hours", "taken"),
    [(1, 4, 1, 4), (1, 4, -1, 1), (1, None, 1, 8), (None, 2, 1, 2), (None, 2, -1, 8), (5, 0, 1, 0)],
)
def test_a_temporary_limit_holds_instead_until_its_time(
    here: Connection, standing: int | None, temporary: int | None, hours: int, taken: int
) -> None:
    tenant = backlog(here, 8)
    until = server_time(here) + timedelta(hours=hours)
    Tenant.objects.filter(pk=tenant).update(
        max_running=standing, temporary_max_running=temporary, temporary_until=until
    )
    assert drain(here, claimer(here)) == taken
