"""What each guard of a statement prevents: a small check that fails without it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg

from dispatch.dispatcher import Dispatcher
from jobs.clock import DatabaseClock
from jobs.leases import Claimer, park, rescue, rescue_process, settle, unpark
from jobs.leases.claim import Pair
from jobs.models import Job, Outcome, Queue, QueueEntry, Tenant, UniqueKey
from jobs.registry import registry
from jobs.results import Completed, Failed, Released, Settlement
from jobs.sql import for_day, load
from jobs.states import JobState
from tests.factories import ERROR, claim, come_due, dispatch, failed, finish, job_in, process, schedule

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)


def _claimer(here: Connection, *types: str, suspects: bool = False) -> Claimer:
    return Claimer("test.noop", process(here), types or registry.names(), suspects=suspects)


def _two(here: Connection, **change: Any) -> tuple[Job, Job]:
    """Two due entries of one pair; `change` is done to the second."""
    jobs = schedule(), schedule()
    come_due(here)
    QueueEntry.objects.filter(job_id=jobs[1].id).update(**change)
    return jobs


def _only_the_first_is_claimed(here: Connection, **change: Any) -> None:
    first, _ = _two(here, **change)
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
    _two(here)
    mine = _claimer(here)
    here.execute("UPDATE jobs_process SET lease_expires_at = clock_timestamp()")
    try:
        mine.claim(here, 9, 9)
    except Exception as error:
        assert type(error).__name__ == "ProcessExpired"  # noqa: PT017
    assert not QueueEntry.objects.filter(lease_token__isnull=False).exists()


def a_tenant_that_was_not_locked_gives_nothing(here: Connection) -> None:
    """Its limit was set after the hop."""
    first, _ = _two(here)
    Tenant.objects.update(max_running=1)
    assert _claimer(here)._take(here, [Pair(first.tenant_id, 0, 1, limited=False)], 9, 9) == []


def a_queue_that_was_not_locked_gives_nothing(here: Connection) -> None:
    first, _ = _two(here)
    Queue.objects.create(name="test.noop", max_running=1)
    assert _claimer(here)._take(here, [Pair(first.tenant_id, 0, 1, limited=False)], 9, 9) == []


def a_tenants_limit_counts_what_runs(here: Connection) -> None:
    _two(here, lease_token=uuid4(), process_id=process(here))
    Tenant.objects.update(max_running=1)
    assert _claimer(here).claim(here, 9, 9) == []


def a_queues_limit_counts_what_runs(here: Connection) -> None:
    _two(here, lease_token=uuid4(), process_id=process(here))
    Queue.objects.create(name="test.noop", max_running=1)
    assert _claimer(here).claim(here, 9, 9) == []


def what_waits_counts_against_no_limit(here: Connection) -> None:
    _two(here)
    Queue.objects.create(name="test.noop", max_running=1)
    assert len(_claimer(here).claim(here, 9, 9)) == 1


def a_last_attempt_is_never_claimed_ahead(here: Connection) -> None:
    _two(here)
    QueueEntry.objects.update(max_attempts=1)
    assert len(_claimer(here).claim(here, 9, 1)) == 1


def a_share_is_a_share(here: Connection) -> None:
    first, _ = _two(here)
    other = schedule(tenant="other")
    come_due(here)
    taken = _claimer(here).claim(here, 2, 2)
    assert {each.tenant_id for each in taken} == {first.tenant_id, other.tenant_id}


def a_stolen_lease_completes_nothing(here: Connection) -> None:
    mine = claim(here, schedule(), process(here)).held
    settle(here, [Settlement(mine._replace(lease_token=uuid4()), Completed(), None)])
    assert not Outcome.objects.exists()


def a_stolen_lease_puts_nothing_back(here: Connection) -> None:
    mine = claim(here, schedule(), process(here)).held
    settle(here, [Settlement(mine._replace(lease_token=uuid4()), Released(), None)])
    assert QueueEntry.objects.get().lease_token == mine.lease_token


def a_stolen_lease_is_called_fenced(here: Connection) -> None:
    mine = claim(here, schedule(), process(here)).held
    finish_as = Settlement(mine, Completed(), None)
    settle(here, [finish_as])
    stolen = finish_as._replace(held=mine._replace(lease_token=uuid4()))
    assert settle(here, [stolen]).fenced == {mine.job_id}


def a_key_for_a_period_outlives_its_job(here: Connection) -> None:
    mine = claim(here, schedule(unique_key="k", unique_for=HOUR), process(here))
    finish(here, mine, Completed())
    assert UniqueKey.objects.exists()


def a_key_until_done_goes_with_its_job(here: Connection) -> None:
    schedule(unique_key="other")
    mine = claim(here, schedule("test.echo", unique_key="k"), process(here))
    finish(here, mine, Completed())
    assert [row.key for row in UniqueKey.objects.all()] == ["other"]


def what_is_not_due_is_not_parked(here: Connection) -> None:
    schedule(delay=timedelta(seconds=4))
    assert not park(here, "test.noop")


def what_runs_is_not_parked(here: Connection) -> None:
    _two(here, lease_token=uuid4(), process_id=process(here))
    here.execute("UPDATE jobs_process SET types = '{}'")
    assert park(here, "test.noop").total() == 1


def the_dead_know_no_types(here: Connection) -> None:
    _two(here)
    process(here)
    here.execute("UPDATE jobs_process SET lease_expires_at = clock_timestamp()")
    assert park(here, "test.noop").total() == 2


def another_queue_is_not_parked(here: Connection) -> None:
    _two(here)
    assert not park(here, "other")


def what_the_living_know_is_not_parked(here: Connection) -> None:
    _two(here)
    process(here)
    assert not park(here, "test.noop")


def what_waits_for_another_reason_is_not_unparked(here: Connection) -> None:
    _two(here, parked="hold")
    assert unpark(here, ["test.noop"]) == 0


def another_type_is_not_unparked(here: Connection) -> None:
    _two(here, parked="type")
    assert unpark(here, ["test.echo"]) == 0


def the_living_are_not_rescued(here: Connection) -> None:
    claim(here, schedule(), process(here))
    assert not rescue(here).fates


def what_a_deleted_process_held_is_rescued(here: Connection) -> None:
    claim(here, schedule(), process(here))
    here.execute("DELETE FROM jobs_process")
    assert rescue(here).fates


def a_supervisor_rescues_its_own_alone(here: Connection) -> None:
    claim(here, schedule(), process(here))
    assert not rescue_process(here, process(here), (), ERROR).fates


def a_running_job_is_not_cancelled_from_outside(here: Connection) -> None:
    job = job_in(JobState.RUNNING, here)
    job.cancel()
    assert QueueEntry.objects.filter(job_id=job.id, cancel_requested=True).exists()
    assert not Outcome.objects.exists()


def a_completed_job_is_not_retried(here: Connection) -> None:
    job = job_in(JobState.COMPLETED, here)
    job.retry()
    assert job.state is JobState.COMPLETED


def attempt_numbers_never_repeat(here: Connection) -> None:
    job = schedule(max_attempts=1)
    finish(here, claim(here, job, process(here)), failed())
    job.retry()
    entry = QueueEntry.objects.get()
    assert (entry.attempt, entry.max_attempts) == (1, 2)


def a_retried_job_does_not_run_early(here: Connection) -> None:
    job = schedule(delay=HOUR)
    job.cancel()
    job.retry()
    assert QueueEntry.objects.get().run_at == job.due_at


def a_running_job_is_not_rescheduled(here: Connection) -> None:
    job = job_in(JobState.RUNNING, here)
    job.reschedule(job.due_at + HOUR)
    assert QueueEntry.objects.get().run_at < job.due_at + HOUR


def a_timer_is_not_dispatched_early(here: Connection) -> None:
    schedule(delay=HOUR)
    assert dispatch(here) == 0


def what_was_set_aside_is_left(here: Connection) -> None:
    job = schedule(delay=HOUR)
    work = Dispatcher()
    work._aside.add(job.id)
    assert work.run_once(here, job.due_at) == 0


def a_late_timer_runs_from_now_on(here: Connection) -> None:
    job = schedule(delay=HOUR)
    dispatch(here, ahead=HOUR)
    assert QueueEntry.objects.get().run_at == job.due_at


def only_what_has_an_entry_is_set_aside(here: Connection) -> None:
    job = schedule(delay=HOUR)
    values = {"until": job.due_at + HOUR, "aside": []}
    assert here.execute(for_day("timer_with_entry", job.due_at.date()), values).fetchone() is None


def a_held_key_is_not_taken(here: Connection) -> None:
    holder = schedule(unique_key="k")
    assert schedule(unique_key="k") == holder


def a_key_whose_period_lasts_is_not_taken_over(here: Connection) -> None:
    holder = schedule(unique_key="k", unique_for=HOUR)
    assert schedule(unique_key="k") == holder


def _an_expired_key_stays(here: Connection, **other: Any) -> None:
    holder = schedule(unique_key="k", unique_for=HOUR)
    schedule(**{"unique_key": "k", **other})
    here.execute("UPDATE jobs_uniquekey SET expires_at = clock_timestamp() WHERE job_id = %s", [holder.id])
    schedule(**{"unique_key": "k", **other})
    assert UniqueKey.objects.filter(job_id=holder.id).exists()


def an_expired_key_of_another_tenant_stays(here: Connection) -> None:
    _an_expired_key_stays(here, tenant="other")


def an_expired_key_of_another_type_stays(here: Connection) -> None:
    _an_expired_key_stays(here, job_type="test.echo")


def another_expired_key_stays(here: Connection) -> None:
    _an_expired_key_stays(here, unique_key="other")


def _next_run(here: Connection) -> Any:
    return here.execute(load("next_run"), {"queues": ["test.noop"]}).fetchone()[1]  # type: ignore[index]


def what_runs_wakes_nobody(here: Connection) -> None:
    _two(here)
    QueueEntry.objects.update(lease_token=uuid4(), process_id=process(here))
    assert _next_run(here) is None


def what_is_parked_wakes_nobody(here: Connection) -> None:
    _two(here)
    QueueEntry.objects.update(parked="type")
    assert _next_run(here) is None


def an_entry_starts_no_earlier_than_it_was_inserted(here: Connection) -> None:
    job = schedule(delay=-HOUR)
    assert QueueEntry.objects.get().run_at > job.due_at


def a_crash_is_counted(here: Connection) -> None:
    finish(here, claim(here, schedule(), process(here)), Failed(ERROR, HOUR, crashed=True))
    assert QueueEntry.objects.get().crashes == 1
