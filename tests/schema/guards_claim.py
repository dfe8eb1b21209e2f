"""What each guard of claims prevents: a small check that fails without it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg

from jobs.clock import DatabaseClock
from jobs.leases import Claimer, fetch
from jobs.models import Job, Queue, QueueEntry, Tenant
from jobs.registry import registry
from tests.factories import come_due, on_the_day_of, process, schedule

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)


def _claimer(here: Connection, *types: str, suspects: bool = False, ahead: timedelta = HOUR * 0) -> Claimer:
    mine = Claimer("test.noop", process(here), types or registry.names(), suspects=suspects, ahead=ahead)
    mine.ring._cursor = 0
    return mine


def two_due(here: Connection, **change: Any) -> tuple[Job, Job]:
    """Two due entries of one pair; `change` is done to the second."""
    jobs = schedule(), schedule()
    come_due(here)
    QueueEntry.objects.filter(job_id=jobs[1].id).update(**change)
    return jobs


def running(here: Connection) -> dict[str, Any]:
    """What makes an entry a claim of long ago."""
    return {"lease_token": uuid4(), "process_id": process(here), "claim_no": 1}


def _only_the_first_is_claimed(here: Connection, **change: Any) -> None:
    first, _ = two_due(here, **change)
    assert [each.held.job_id for each in _claimer(here).claim(here, 9, 9)] == [first.id]


def a_leased_entry_is_not_claimed(here: Connection) -> None:
    _only_the_first_is_claimed(here, lease_token=uuid4(), process_id=process(here))


def a_parked_entry_is_not_claimed(here: Connection) -> None:
    _only_the_first_is_claimed(here, parked="type")


def an_entry_is_not_claimed_early(here: Connection) -> None:
    _only_the_first_is_claimed(here, run_at=DatabaseClock().read(here) + HOUR)


def what_must_start_at_once_is_not_claimed_early(here: Connection) -> None:
    first, _ = two_due(here, run_at=DatabaseClock().read(here) + HOUR / 2, max_attempts=1)
    mine = _claimer(here, ahead=HOUR)
    assert [each.held.job_id for each in mine.claim(here, 9, 9)] == [first.id]


def an_unknown_type_is_not_claimed(here: Connection) -> None:
    _only_the_first_is_claimed(here, job_type="nobody.knows")


def a_suspect_is_not_claimed_among_others(here: Connection) -> None:
    _only_the_first_is_claimed(here, crashes=2)


def a_claim_begins_at_its_mark(here: Connection) -> None:
    two_due(here)
    mine = _claimer(here)
    mine.looks.look(here)
    ((pair, mark),) = mine.ring.marks.items()
    mine.ring.advance(pair, (mark[0] + HOUR, mark[1]))
    assert mine._take(here, mine.ring.choose(9), 9, 9) == []


def a_dead_process_claims_nothing(here: Connection) -> None:
    """Though another lives."""
    two_due(here)
    mine = _claimer(here)
    here.execute("UPDATE jobs_process SET lease_expires_at = clock_timestamp()")
    process(here)
    try:
        mine.claim(here, 9, 9)
    except Exception as error:
        assert type(error).__name__ == "ProcessExpired"  # noqa: PT017
    assert not QueueEntry.objects.filter(lease_token__isnull=False).exists()


def a_tenant_that_was_not_locked_gives_nothing(here: Connection) -> None:
    """Its limit was set after the look, so that the first claim locks nothing."""
    two_due(here)
    mine = _claimer(here)
    mine.looks.look(here)
    Tenant.objects.update(max_running=1)
    assert mine._take(here, mine.ring.choose(9), 9, 9) == []


def a_queue_that_was_not_locked_gives_nothing(here: Connection) -> None:
    two_due(here)
    Queue.objects.create(name="test.noop", max_running=1)
    mine = _claimer(here)
    mine.looks.look(here)
    assert mine._take(here, mine.ring.choose(9), 9, 9) == []


def a_tenants_limit_counts_what_runs(here: Connection) -> None:
    two_due(here, **running(here))
    Tenant.objects.update(max_running=1)
    assert _claimer(here).claim(here, 9, 9) == []


def a_queues_limit_counts_what_runs(here: Connection) -> None:
    two_due(here, **running(here))
    Queue.objects.create(name="test.noop", max_running=1)
    assert _claimer(here).claim(here, 9, 9) == []


def what_is_claimed_counts_in_the_next_claim(here: Connection) -> None:
    two_due(here)
    Tenant.objects.update(max_running=1)
    assert [len(_claimer(here).claim(here, 9, 9)) for _ in range(2)] == [1, 0]


def what_waits_again_counts_against_no_limit(here: Connection) -> None:
    """It keeps the number of its last claim."""
    two_due(here)
    QueueEntry.objects.update(claim_no=1)
    Queue.objects.create(name="test.noop", max_running=1)
    assert len(_claimer(here).claim(here, 9, 9)) == 1
    QueueEntry.objects.update(lease_token=None, process_id=None)
    Queue.objects.all().delete()
    Tenant.objects.update(max_running=1)
    assert len(_claimer(here).claim(here, 9, 9)) == 1


def what_others_run_counts_against_no_limit(here: Connection) -> None:
    """What another tenant runs, and what runs in another queue."""
    two_due(here)
    for other in (schedule(tenant="other"), schedule(queue="other")):
        QueueEntry.objects.filter(job_id=other.id).update(**running(here))
    Queue.objects.create(name="test.noop", max_running=2)
    Tenant.objects.exclude(slug="other").update(max_running=2)
    assert len(_claimer(here).claim(here, 9, 9)) == 1


def a_last_attempt_is_never_claimed_ahead(here: Connection) -> None:
    two_due(here)
    QueueEntry.objects.update(max_attempts=1)
    assert len(_claimer(here).claim(here, 9, 1)) == 1


def who_was_in_a_crash_is_never_claimed_ahead(here: Connection) -> None:
    two_due(here)
    QueueEntry.objects.update(crashes=1)
    assert len(_claimer(here).claim(here, 9, 1)) == 1


def a_slot_of_a_tenant_is_not_held_by_what_waits_for_a_thread(here: Connection) -> None:
    two_due(here)
    schedule(tenant="other")
    come_due(here)
    Tenant.objects.update(max_running=9)
    assert len(_claimer(here).claim(here, 9, 1)) == 1


def a_slot_of_a_queue_is_not_held_by_what_waits_for_a_thread(here: Connection) -> None:
    two_due(here)
    Queue.objects.create(name="test.noop", max_running=9)
    assert _claimer(here).claim(here, 9, 0) == []


def what_may_wait_takes_no_thread_from_what_may_not(here: Connection) -> None:
    first, second = two_due(here, max_attempts=1)
    taken = _claimer(here).claim(here, 9, 1)
    assert [each.held.job_id for each in taken] == [first.id, second.id]


def a_share_is_a_share(here: Connection) -> None:
    two_due(here)
    for _ in range(2):
        schedule(tenant="other")
    come_due(here)
    assert len({each.tenant_id for each in _claimer(here).claim(here, 2, 2)}) == 2


def a_share_is_one_of_all_priorities(here: Connection) -> None:
    for tenant in ("default", "other"):  # whichever has its turn first
        schedule(tenant=tenant, priority=5)
    a_share_is_a_share(here)


def each_tenant_is_probed_for_its_own_pairs(here: Connection) -> None:
    for tenant in ("a", "b"):
        schedule(tenant=tenant)
    come_due(here)
    taken = _claimer(here).claim(here, 9, 9)
    assert len(taken) == len({each.held.job_id for each in taken}) == 2


def each_job_brings_its_own_payload(here: Connection) -> None:
    due_at = DatabaseClock().read(here)
    jobs = {schedule("test.echo", {"n": n}, queue="test.noop", due_at=due_at).id: n for n in range(3)}
    come_due(here)
    with on_the_day_of(due_at):
        taken = _claimer(here).claim(here, 9, 9)
    for claims in (taken, fetch(here, [each._replace(payload=None) for each in taken])[0]):
        assert {each.held.job_id: each.payload for each in claims} == {
            job_id: f'{{"n": {n}}}' for job_id, n in jobs.items()
        }


def what_has_no_row_brings_no_payload(here: Connection) -> None:
    """Though others are due at the same time."""
    due_at = DatabaseClock().read(here)
    jobs = sorted(schedule(due_at=due_at).id for _ in range(3))
    here.execute("DELETE FROM jobs_job WHERE id = %s", [jobs[0]])
    come_due(here)
    with on_the_day_of(due_at):
        taken = {each.held.job_id: each for each in _claimer(here).claim(here, 9, 9)}
    assert taken[jobs[0]].payload is None
    assert fetch(here, [taken[jobs[0]]]) == ([], [taken[jobs[0]]])


def a_claim_locks_the_limited_alone(here: Connection) -> None:
    limited, free = schedule(tenant="limited").tenant_id, schedule(tenant="free").tenant_id
    come_due(here)
    mine = _claimer(here)
    mine.looks.look(here)
    mine.ring.limited |= {limited, free}  # as it was a moment ago
    other = schedule(tenant="other", queue="other").tenant_id
    Tenant.objects.filter(pk__in=[limited, other]).update(max_running=5)
    mine.claim(here, 9, 9)
    assert here.execute("SELECT current_setting('punctual.tenants')").fetchone() == (str(limited),)


def a_claim_locks_its_own_queue_alone(here: Connection) -> None:
    two_due(here)
    for name in ("another", "test.noop"):
        Queue.objects.create(name=name, max_running=1)
    assert len(_claimer(here).claim(here, 9, 9)) == 1
