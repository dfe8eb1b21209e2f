"""Jobs with a concurrency key wait for it, and are admitted as it has room."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from jobs import clock
from jobs.errors import NotConfigured
from jobs.leases import end, park, rescue, settle, unpark
from jobs.models import Job, KeyLimit, QueueEntry, Timer
from jobs.newjob import NewJob
from jobs.registry import job_type, registry
from jobs.results import Completed, Released, Result, Settlement, Snoozed
from jobs.sql import load
from jobs.states import JobState
from tests.factories import claim, come_due, dispatch, failed, finish, process, schedule, take
from tests.keyed import admitted, allow, key_of, keyed, let_in

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)


def parked(job: Job) -> str | None:
    return QueueEntry.objects.get(job_id=job.id).parked


def test_a_job_with_a_key_is_born_waiting_and_one_of_the_key_is_admitted(here: Connection) -> None:
    first, second, other, plain = keyed(), keyed(), keyed("other"), schedule()
    assert [parked(job) for job in (first, second, other, plain)] == ["key", "key", "key", None]
    assert let_in(here, first, other) == 2
    assert admitted(first, second, other) == [True, False, True]
    assert let_in(here, first, other) == 0


def test_a_key_belongs_to_its_tenant(here: Connection) -> None:
    mine, yours = keyed(tenant="mine"), keyed(tenant="yours")
    let_in(here, mine, yours)
    assert admitted(mine, yours) == [True, True]


def test_who_waits_is_queued_and_cannot_be_claimed(here: Connection) -> None:
    first, second = keyed(), keyed()
    let_in(here, first)
    come_due(here)
    taken = take(here, "test.noop", process(here))
    assert [each.held.job_id for each in taken] == [first.id]
    assert taken[0].held.key == key_of(first)
    assert taken[0].limited, "its body must not outlive its lease"
    assert second.state is JobState.QUEUED


def test_the_highest_priority_is_admitted_first_then_who_has_waited_longest(here: Connection) -> None:
    late, early = keyed(), keyed(delay=-HOUR)
    urgent = keyed(priority=5)
    QueueEntry.objects.filter(job_id=early.id).update(run_at=early.due_at)
    for job in (urgent, early, late):
        assert let_in(here, job) == 1
        assert admitted(job) == [True]
        job.cancel()


def test_the_urgent_whose_time_has_not_come_is_passed_over(here: Connection) -> None:
    soon = keyed(priority=5, delay=timedelta(seconds=4))
    now = keyed()
    let_in(here, now)
    assert admitted(soon, now) == [False, True]


def test_what_is_due_now_is_admitted_although_now_was_rounded_up(here: Connection) -> None:
    job = keyed()
    here.execute("UPDATE jobs_queueentry SET run_at = statement_timestamp() + interval '1 ms'")
    values = {"tenants": [job.tenant_id], "names": ["k"]}
    assert here.execute(load("admit"), values).rowcount == 1


def test_as_many_as_the_type_allows_run_at_once(here: Connection) -> None:
    allow(here, 3)
    jobs = [keyed() for _ in range(5)]
    assert let_in(here, *jobs) == 3
    allow(here, 4)
    assert let_in(here, *jobs) == 1
    allow(here, 1)
    jobs[0].cancel()
    assert let_in(here, *jobs) == 0, "a lower limit ends nothing and admits nobody"


def test_types_that_allow_different_numbers_share_a_line_and_none_is_passed_by(here: Connection) -> None:
    allow(here, 2, "test.echo")
    first, second = keyed(job_type="test.echo"), keyed(job_type="test.echo")
    alone, third = keyed(), keyed(job_type="test.echo")
    assert let_in(here, first) == 2
    first.cancel()
    assert let_in(here, first) == 0, "the next in line runs alone, so it waits, and the one behind it too"
    second.cancel()
    assert let_in(here, first) == 1
    assert admitted(alone, third) == [True, False]


@pytest.mark.parametrize("result", [Completed(), Completed('"r"'), failed(final=True)])
def test_a_job_that_has_ended_makes_room(here: Connection, result: Result) -> None:
    first, second = keyed(), keyed()
    let_in(here, first)
    finish(here, claim(here, first, process(here)), result)
    assert let_in(here, second) == 1


@pytest.mark.parametrize("result", [failed(), Snoozed(HOUR)])
def test_who_waits_for_another_attempt_makes_room_and_stands_in_line_again(
    here: Connection, result: Result
) -> None:
    first, second = keyed(), keyed()
    let_in(here, first)
    finish(here, claim(here, first, process(here)), result)
    assert parked(first) == "key"
    assert let_in(here, second) == 1
    QueueEntry.objects.filter(job_id=first.id).update(run_at=clock.now() - HOUR)
    assert let_in(here, first) == 0
    second.cancel()
    assert let_in(here, first) == 1
    assert admitted(first) == [True]


def test_who_was_only_released_keeps_his_place(here: Connection) -> None:
    first, second = keyed(), keyed()
    let_in(here, first)
    finish(here, claim(here, first, process(here)), Released())
    assert let_in(here, second) == 0
    assert admitted(first) == [True]


def test_a_settle_tells_which_keys_may_have_room_also_when_it_came_too_late(here: Connection) -> None:
    job, plain = keyed(), schedule(queue="other")
    let_in(here, job)
    held = [claim(here, each, process(here)) for each in (job, plain)]
    batch = [Settlement(each.held, Completed(), None) for each in held]
    assert settle(here, batch).keys == {key_of(job)}
    assert settle(here, batch).keys == {key_of(job)}


def test_what_a_dead_process_held_keeps_or_gives_up_its_place_as_its_fate_is(here: Connection) -> None:
    first = keyed(max_attempts=1)
    let_in(here, first)
    mine = process(here)
    claim(here, first, mine)
    end(here, [mine])
    assert rescue(here).keys == {key_of(first)}
    second = keyed()
    assert let_in(here, second) == 1


def test_a_timer_waits_for_its_key_once_it_is_dispatched(here: Connection) -> None:
    job = keyed(delay=HOUR)
    assert Timer.objects.get().concurrency_key == "k"
    dispatch(here, ahead=HOUR)
    entry = QueueEntry.objects.get()
    assert (entry.parked, entry.concurrency_key, entry.run_at) == ("key", "k", job.due_at)
    assert let_in(here, job) == 0


def test_many_at_once_wait_for_their_keys(here: Connection) -> None:
    new = [NewJob(job_type="test.noop", concurrency_key=key) for key in ("a", "a", "b", None)]
    new += [NewJob(job_type="test.noop", concurrency_key=key, delay=HOUR) for key in ("a", None)]
    ids = [job_id for job_id, _ in Job.objects.schedule_many(new)]
    found = {
        **dict(QueueEntry.objects.values_list("job_id", "concurrency_key")),
        **dict(Timer.objects.values_list("job_id", "concurrency_key")),
    }
    assert [found[job_id] for job_id in ids] == ["a", "a", "b", None, "a", None]
    assert set(QueueEntry.objects.filter(parked="key").values_list("job_id", flat=True)) == set(ids[:3])
    assert [job.concurrency_key for job in Job.objects.in_bulk(ids).values()].count("a") == 3


def test_a_retried_job_waits_for_its_key(here: Connection) -> None:
    first, second = keyed(), keyed()
    first.cancel()
    let_in(here, second)
    assert first.retry().changed == 1
    assert parked(first) == "key"
    assert let_in(here, first) == 0
    second.cancel()
    assert let_in(here, first) == 1


@pytest.mark.parametrize("has_place", [False, True])
def test_a_rescheduled_job_gives_up_its_place(here: Connection, has_place: bool) -> None:
    job = keyed()
    if has_place:
        let_in(here, job)
    job.reschedule(clock.now() + HOUR)
    assert parked(job) == "key"
    assert let_in(here, keyed()) == 1


def test_a_rescheduled_timer_waits_for_its_key(here: Connection) -> None:
    job = keyed(delay=HOUR)
    job.reschedule(clock.now())
    assert parked(job) == "key"


def test_a_reschedule_does_not_lift_what_else_an_entry_waits_for(here: Connection) -> None:
    job = keyed()
    QueueEntry.objects.update(parked="type")
    job.reschedule(clock.now())
    assert parked(job) == "type"


def test_a_cancelled_job_makes_room(here: Connection) -> None:
    first, second = keyed(), keyed()
    let_in(here, first)
    assert first.cancel().changed == 1
    assert let_in(here, second) == 1


def test_a_job_that_waits_can_be_cancelled(here: Connection) -> None:
    first, second = keyed(), keyed()
    let_in(here, first)
    assert second.cancel().changed == 1
    assert second.state is JobState.CANCELLED


def test_who_was_parked_for_its_type_waits_for_its_key_again(here: Connection) -> None:
    first, second = keyed(job_type="test.echo", queue="q"), keyed(job_type="test.echo", queue="q")
    let_in(here, first)
    come_due(here)
    assert park(here, "q").total() == 1
    assert parked(first) == "type"
    assert let_in(here, second) == 1
    assert unpark(here, ["test.echo"]) == 1
    assert parked(first) == "key"
    assert let_in(here, first) == 0


def test_what_is_admitted_does_not_lie_behind_what_claimers_have_passed(here: Connection) -> None:
    job = keyed()
    QueueEntry.objects.update(run_at=job.due_at - HOUR)
    let_in(here, job)
    assert QueueEntry.objects.get().run_at > job.due_at


def test_many_keys_are_filled_in_parts(here: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.leases.gate.BATCH", 2)
    jobs = [keyed(str(n)) for n in range(5)]
    assert let_in(here, *jobs) == 5
    assert all(admitted(*jobs))


def test_types_are_told_with_what_they_allow_where_it_is_not_one(here: Connection) -> None:
    allow(here, 1, "test.noop")
    allow(here, 3, "test.echo")
    assert dict(KeyLimit.objects.values_list("job_type", "most")) == {"test.echo": 3}
    changed = KeyLimit.objects.get().changed_at
    allow(here, 3, "test.echo")
    assert KeyLimit.objects.get().changed_at == changed
    allow(here, 1, "test.echo")
    told = KeyLimit.objects.get()
    assert (told.most, told.changed_at > changed) == (1, True)


@pytest.mark.parametrize("most", [0, -1, True, 1.5, "2", None, 10_001])
def test_a_type_that_allows_no_whole_number_is_refused(most: Any) -> None:
    with pytest.raises(NotConfigured, match=r"concurrency is .*; a whole number from 1 to 10000"):
        job_type("test.wrong", concurrency=most)(lambda context: None)
    assert registry.get("test.wrong") is None


def test_a_test_of_an_app_may_call_what_waits_for_its_commit(
    here: Connection, django_capture_on_commit_callbacks: Any
) -> None:
    """Inside the transaction that it rolls back, where nothing can be admitted."""
    with django_capture_on_commit_callbacks(execute=True):
        job = keyed()
    assert parked(job) == "key"


def test_nothing_is_sent_for_jobs_without_a_key(
    here: Connection, django_assert_num_queries: Any, django_capture_on_commit_callbacks: Any
) -> None:
    schedule()
    with django_capture_on_commit_callbacks() as hooks:
        schedule(delay=HOUR).cancel()
    with django_capture_on_commit_callbacks() as keyed_hooks:
        keyed().cancel()
    assert len(keyed_hooks) == len(hooks) + 3, "its hint to idle workers, its admission, that of the next"
