from __future__ import annotations

import time
from typing import Any

import psycopg
import pytest

from jobs.leases import Claimer, settle
from jobs.models import Queue, QueueEntry, Tenant
from jobs.registry import registry
from jobs.results import Completed, Settlement
from tests.factories import come_due, process, schedule

Connection = psycopg.Connection[Any]


def claimer(here: Connection, queue: str = "q") -> Claimer:
    return Claimer(queue, process(here), registry.names())


def backlog(here: Connection, number: int = 6, *, queue: str = "q", tenant: str = "limited") -> int:
    jobs = [schedule(queue=queue, tenant=tenant) for _ in range(number)]
    come_due(here)
    return int(jobs[-1].tenant_id)


def limit_tenant(tenant_id: int, most: int | None) -> None:
    Tenant.objects.filter(pk=tenant_id).update(max_running=most)


@pytest.mark.parametrize("most", [0, 1, 4])
def test_no_more_of_a_tenant_run_than_its_limit(here: Connection, most: int) -> None:
    limit_tenant(backlog(here), most)
    taken = [each for _ in range(8) for each in claimer(here).claim(here, 3, 3)]
    assert len(taken) == most
    assert all(each.limited for each in taken)


@pytest.mark.parametrize("most", [0, 1, 4])
def test_no_more_of_a_queue_run_than_its_limit(here: Connection, most: int) -> None:
    backlog(here, 3, tenant="a")
    backlog(here, 3, tenant="b")
    Queue.objects.create(name="q", max_running=most)
    taken = [each for _ in range(8) for each in claimer(here).claim(here, 3, 3)]
    assert len(taken) == most
    assert all(each.limited for each in taken)


def test_a_tenants_limit_spans_its_queues(here: Connection) -> None:
    backlog(here, queue="q")
    limit_tenant(backlog(here, queue="r"), 5)
    assert len(claimer(here, "q").claim(here, 3, 3)) == 3
    assert len(claimer(here, "r").claim(here, 3, 3)) == 2


def test_of_two_limits_the_lower_one_holds(here: Connection) -> None:
    tenant = backlog(here)
    Queue.objects.create(name="q", max_running=2)
    for tenant_limit, running in ((1, 1), (5, 2)):
        limit_tenant(tenant, tenant_limit)
        mine = claimer(here)
        for _ in range(4):
            mine.claim(here, 9, 9)
        assert QueueEntry.objects.filter(lease_token__isnull=False).count() == running


def test_a_full_tenant_does_not_hold_up_the_others(here: Connection) -> None:
    limit_tenant(backlog(here, tenant="full"), 0)
    other = backlog(here, 2, tenant="other")
    assert [each.tenant_id for each in claimer(here).claim(here, 5, 5)] == [other, other]


def test_the_limit_of_one_queue_is_not_that_of_another(here: Connection) -> None:
    backlog(here, queue="r")
    Queue.objects.create(name="q", max_running=0)
    assert len(claimer(here, "r").claim(here, 4, 4)) == 4


def test_entries_under_a_limit_are_claimed_for_free_threads_only(here: Connection) -> None:
    tenant = backlog(here)
    limit_tenant(tenant, 4)
    assert len(claimer(here).claim(here, 6, 1)) == 1
    limit_tenant(tenant, None)
    Queue.objects.create(name="q", max_running=6)
    mine = claimer(here)
    mine.claim(here, 1, 1)  # a claimer learns of its queue's limit by the first claim
    assert len(mine.claim(here, 6, 2)) == 2


def test_a_limit_that_was_lowered_below_what_runs_gives_nothing_more(here: Connection) -> None:
    tenant = backlog(here)
    assert len(claimer(here).claim(here, 4, 4)) == 4
    limit_tenant(tenant, 2)
    assert claimer(here).claim(here, 4, 4) == []


def test_a_limit_that_was_lifted_counts_no_more(here: Connection) -> None:
    tenant = backlog(here)
    limit_tenant(tenant, 1)
    mine = claimer(here)
    mine.claim(here, 4, 4)
    limit_tenant(tenant, None)
    mine.settled(tenant)
    assert len(mine.claim(here, 4, 4)) == 4


def test_a_slot_that_became_free_is_given_again(here: Connection) -> None:
    tenant = backlog(here)
    limit_tenant(tenant, 1)
    mine = claimer(here)
    (first,) = mine.claim(here, 4, 4)
    assert mine.claim(here, 4, 4) == []
    assert (mine.retry_in() or 0.0) <= 0.02
    settle(here, [Settlement(first.held, Completed(), None)])
    mine.settled(tenant)
    assert len(mine.claim(here, 4, 4)) == 1


def test_a_full_tenant_is_looked_at_again_after_a_while_without_being_told(
    here: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = backlog(here)
    limit_tenant(tenant, 0)
    mine = claimer(here)
    assert mine.claim(here, 4, 4) == []
    limit_tenant(tenant, 3)
    begun = time.monotonic()
    for seconds, count in ((1.0, 0), (2.0, 3)):  # seen once, and still there
        monkeypatch.setattr("jobs.leases.passed.time.monotonic", lambda: begun + seconds)  # noqa: B023
        assert len(mine.claim(here, 4, 4)) == count
