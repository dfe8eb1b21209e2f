"""What each guard of claims prevents: a small check that fails without it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg

from jobs.clock import DatabaseClock
from jobs.leases import Claimer
from jobs.leases.claim import Pair
from jobs.models import Job, Queue, QueueEntry, Tenant
from jobs.registry import registry
from tests.factories import come_due, process, schedule

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)


def _claimer(here: Connection, *types: str, suspects: bool = False) -> Claimer:
    return Claimer("test.noop", process(here), types or registry.names(), suspects=suspects)


def two_due(here: Connection, **change: Any) -> tuple[Job, Job]:
    """Two due entries of one pair; `change` is done to the second."""
    jobs = schedule(), schedule()
    come_due(here)
    QueueEntry.objects.filter(job_id=jobs[1].id).update(**change)
    return jobs


def _only_the_first_is_claimed(here: Connection, **change: Any) -> None:
    first, _ = two_due(here, **change)
    assert [each.held.job_id for each in _claimer(here).claim(here, 9, 9)] == [first.id]


def a_leased_entry_is_not_claimed(here: Connection) -> None:
    _only_the_first_is_claimed(here, lease_token=uuid4(), process_id=process(here))


def a_parked_entry_is_not_claimed(here: Connection) -> None:
    _only_the_first_is_claimed(here, parked="type")


def an_entry_is_not_claimed_early(here: Connection) -> None:
    _only_the_first_is_claimed(here, run_at=DatabaseClock().read(here) + HOUR)


def an_unknown_type_is_not_claimed(here: Connection) -> None:
    _only_the_first_is_claimed(here, job_type="nobody.knows")


def a_suspect_is_not_claimed_among_others(here: Connection) -> None:
    _only_the_first_is_claimed(here, crashes=2)


def a_dead_process_claims_nothing(here: Connection) -> None:
    two_due(here)
    mine = _claimer(here)
    here.execute("UPDATE jobs_process SET lease_expires_at = clock_timestamp()")
    try:
        mine.claim(here, 9, 9)
    except Exception as error:
        assert type(error).__name__ == "ProcessExpired"  # noqa: PT017
    assert not QueueEntry.objects.filter(lease_token__isnull=False).exists()


def a_tenant_that_was_not_locked_gives_nothing(here: Connection) -> None:
    """Its limit was set after the hop."""
    first, _ = two_due(here)
    Tenant.objects.update(max_running=1)
    assert _claimer(here)._take(here, [Pair(first.tenant_id, 0, 1, limited=False)], 9, 9) == []


def a_queue_that_was_not_locked_gives_nothing(here: Connection) -> None:
    first, _ = two_due(here)
    Queue.objects.create(name="test.noop", max_running=1)
    assert _claimer(here)._take(here, [Pair(first.tenant_id, 0, 1, limited=False)], 9, 9) == []


def a_tenants_limit_counts_what_runs(here: Connection) -> None:
    two_due(here, lease_token=uuid4(), process_id=process(here))
    Tenant.objects.update(max_running=1)
    assert _claimer(here).claim(here, 9, 9) == []


def a_queues_limit_counts_what_runs(here: Connection) -> None:
    two_due(here, lease_token=uuid4(), process_id=process(here))
    Queue.objects.create(name="test.noop", max_running=1)
    assert _claimer(here).claim(here, 9, 9) == []


def what_waits_counts_against_no_limit(here: Connection) -> None:
    two_due(here)
    Queue.objects.create(name="test.noop", max_running=1)
    assert len(_claimer(here).claim(here, 9, 9)) == 1


def a_last_attempt_is_never_claimed_ahead(here: Connection) -> None:
    two_due(here)
    QueueEntry.objects.update(max_attempts=1)
    assert len(_claimer(here).claim(here, 9, 1)) == 1


def a_share_is_a_share(here: Connection) -> None:
    two_due(here)
    for _ in range(2):
        schedule(tenant="other")
    come_due(here)
    claimer = _claimer(here)
    claimer._after = 0  # from the first tenant on, so that one hop sees both
    assert len({each.tenant_id for each in claimer.claim(here, 2, 2)}) == 2
