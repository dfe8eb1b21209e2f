from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from jobs.leases import Claimer, ProcessExpired, end, fetch
from jobs.models import Job, QueueEntry
from jobs.registry import registry
from jobs.results import Claim, Held
from tests.factories import come_due, on_the_day_of, process, schedule, server_time

Connection = psycopg.Connection[Any]
DAY = timedelta(days=1)


def ready(*jobs: Job, ago: float = 60.0) -> None:
    """These jobs became due one after another, a second each."""
    first = min(job.created_at for job in jobs) - timedelta(seconds=ago)
    for number, job in enumerate(jobs):
        moment = first + timedelta(seconds=number)
        QueueEntry.objects.filter(job_id=job.id).update(run_at=moment)


def ids(taken: list[Claim]) -> list[UUID]:
    return [each.held.job_id for each in taken]


def claimer(here: Connection, queue: str = "test.noop", **options: Any) -> Claimer:
    return Claimer(queue, process(here), registry.names(), **options)


def test_a_claim_writes_the_lease_and_counts_the_attempt(here: Connection) -> None:
    job = schedule(max_attempts=7, group="letters", priority=3)
    ready(job)
    mine = claimer(here)

    (taken,) = mine.claim(here, 10, 10)

    entry = QueueEntry.objects.get(job_id=job.id)
    assert entry.claimed_at
    assert entry.lease_token
    assert taken.held == Held(job.id, entry.lease_token, mine.process_id, "test.noop", 1, 7, 0)
    assert taken.held.due_at == entry.due_at == job.due_at
    assert (taken.tenant_id, taken.priority, taken.group, taken.limited) == (
        job.tenant_id,
        3,
        "letters",
        False,
    )
    assert (entry.process_id, entry.attempt) == (mine.process_id, 1)
    assert entry.claim_no is not None


def test_each_claim_has_a_token_of_its_own_and_no_entry_is_claimed_twice(here: Connection) -> None:
    jobs = [schedule() for _ in range(6)]
    ready(*jobs)
    claims = [claimer(here).claim(here, 2, 2) for _ in range(4)]
    assert [len(taken) for taken in claims] == [2, 2, 2, 0]
    assert sorted(job_id for taken in claims for job_id in ids(taken)) == sorted(job.id for job in jobs)
    assert len({each.held.lease_token for taken in claims for each in taken}) == 3


def test_later_claims_have_higher_numbers(here: Connection) -> None:
    jobs = [schedule() for _ in range(3)]
    ready(*jobs)
    for _ in jobs:
        claimer(here).claim(here, 1, 1)
    numbers = [QueueEntry.objects.get(job_id=job.id).claim_no or 0 for job in jobs]
    assert numbers == sorted(set(numbers))


def test_a_claim_brings_what_was_asked_for_where_the_job_is_due_today(here: Connection) -> None:
    today = schedule("test.echo", {"a": "ä"}, queue="q")
    yesterday = schedule(queue="q", due_at=today.due_at - DAY)
    ready(today, yesterday)
    with on_the_day_of(today.due_at):
        claims = claimer(here, "q").claim(here, 9, 9)
    assert {each.held.job_id: each.payload for each in claims} == {today.id: '{"a": "ä"}', yesterday.id: None}
    found, missing = fetch(here, claims)
    assert {each.held.job_id: each.payload for each in found} == {today.id: '{"a": "ä"}', yesterday.id: "{}"}
    assert not missing


def test_the_entry_that_may_run_first_is_claimed_first(here: Connection) -> None:
    jobs = [schedule() for _ in range(4)]
    jobs = [jobs[2], jobs[0], jobs[3], jobs[1]]
    ready(*jobs)
    assert ids(claimer(here).claim(here, 3, 3)) == [job.id for job in jobs[:3]]


def test_entries_of_one_instant_are_claimed_in_the_order_of_their_ids(here: Connection) -> None:
    jobs = [schedule() for _ in range(6)]
    QueueEntry.objects.update(run_at=jobs[0].created_at - timedelta(minutes=1))
    assert ids(claimer(here).claim(here, 4, 4)) == sorted(job.id for job in jobs)[:4]


def test_the_larger_priority_goes_first_within_a_tenant(here: Connection) -> None:
    jobs = [schedule(priority=priority) for priority in (-5, 100, 0)]
    ready(*jobs)
    mine = claimer(here)
    order = [job for _ in jobs for job in ids(mine.claim(here, 1, 1))]
    assert order == [jobs[1].id, jobs[2].id, jobs[0].id]


def test_what_is_not_due_is_not_claimed_and_hides_nothing_that_is(here: Connection) -> None:
    due = schedule(priority=-3)
    ready(due)
    for priority in range(-2, 3):
        schedule(priority=priority, delay=timedelta(seconds=3))
    assert ids(claimer(here).claim(here, 10, 10)) == [due.id]
    assert claimer(here).claim(here, 10, 10) == []


def test_entries_of_another_queue_are_left_alone(here: Connection) -> None:
    ready(schedule(queue="other"))
    assert claimer(here).claim(here, 10, 10) == []


def test_a_parked_entry_is_not_claimed(here: Connection) -> None:
    job = schedule()
    ready(job)
    QueueEntry.objects.update(parked="type")
    assert claimer(here).claim(here, 10, 10) == []


def test_the_lowest_of_all_priorities_is_found_behind_all_others(here: Connection) -> None:
    for priority in range(-99, 101):
        schedule(priority=priority, delay=timedelta(seconds=4))
    job = schedule(priority=-100)
    ready(job)
    assert ids(claimer(here).claim(here, 10, 10)) == [job.id]


@pytest.mark.parametrize(("last", "free", "expected"), [(True, 2, 2), (True, 0, 0), (False, 0, 3)])
def test_an_entry_on_its_last_attempt_is_claimed_for_a_free_thread_only(
    here: Connection, last: bool, free: int, expected: int
) -> None:
    ready(*(schedule(max_attempts=1 if last else 2) for _ in range(3)))
    assert len(claimer(here).claim(here, 3, free)) == expected


def test_an_entry_that_was_in_a_crash_is_claimed_for_a_free_thread_only(here: Connection) -> None:
    jobs = [schedule() for _ in range(3)]
    ready(*jobs)
    QueueEntry.objects.filter(job_id__in=[job.id for job in jobs[:2]]).update(crashes=1)
    assert ids(claimer(here).claim(here, 3, 1)) == [jobs[0].id, jobs[2].id]


def test_entries_that_crashed_twice_are_only_for_a_process_of_their_own(here: Connection) -> None:
    sound, suspect = schedule(), schedule()
    ready(suspect, sound)
    QueueEntry.objects.filter(job_id=suspect.id).update(crashes=2)
    assert ids(claimer(here).claim(here, 9, 9)) == [sound.id]
    assert ids(claimer(here, suspects=True).claim(here, 9, 9)) == [suspect.id]


@pytest.mark.parametrize("how", ["expired", "ended", "deleted"])
def test_a_process_whose_lease_has_ended_claims_nothing_and_learns_it(here: Connection, how: str) -> None:
    job = schedule()
    ready(job)
    mine = claimer(here)
    if how == "expired":
        here.execute("UPDATE jobs_process SET lease_expires_at = clock_timestamp()")
    elif how == "ended":
        end(here, [mine.process_id])
    else:
        here.execute("DELETE FROM jobs_process")
    with pytest.raises(ProcessExpired):
        mine.claim(here, 1, 1)
    assert QueueEntry.objects.get(job_id=job.id).lease_token is None


def test_the_claimers_clock_is_set_by_each_claim(here: Connection) -> None:
    schedule()
    come_due(here)
    mine = claimer(here)
    mine.claim(here, 1, 1)
    now = server_time(here)
    assert not mine.looks.clock.stale()
    assert abs(mine.looks.clock.now() - now) < timedelta(seconds=1)
