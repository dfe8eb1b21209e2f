"""What each guard of concurrency keys prevents: a small check that fails without it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg

from jobs import arrays, clock
from jobs.invariant import check
from jobs.models import Job, QueueEntry
from jobs.results import Released
from jobs.sql import load
from tests.factories import claim, dispatch, failed, finish, process
from tests.keyed import admitted, allow, key_of, keyed, let_in

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)


def ago(here: Connection, job: Job, time: timedelta) -> None:
    """As if it had been due, and waited, since then."""
    here.execute(
        "UPDATE jobs_queueentry SET run_at = clock_timestamp() - %s WHERE job_id = %s", [time, job.id]
    )


def what_is_born_with_a_key_waits_for_it(here: Connection) -> None:
    jobs = [keyed(), keyed(delay=HOUR)]
    dispatch(here, ahead=HOUR)
    moved = keyed(delay=HOUR)
    moved.reschedule(clock.now())
    again = keyed()
    again.cancel()
    again.retry()
    assert admitted(*jobs, moved, again) == [False] * 4


def who_waits_for_another_attempt_gives_up_its_place(here: Connection) -> None:
    first, second = keyed(), keyed()
    let_in(here, first)
    finish(here, claim(here, first, process(here)), failed())
    assert let_in(here, second) == 1


def who_is_released_keeps_its_place(here: Connection) -> None:
    job = keyed()
    let_in(here, job)
    finish(here, claim(here, job, process(here)), Released())
    assert admitted(job) == [True]


def who_is_rescheduled_gives_up_its_place(here: Connection) -> None:
    first, second = keyed(), keyed()
    let_in(here, first)
    first.reschedule(clock.now() + HOUR)
    assert let_in(here, second) == 1


def a_reschedule_lifts_no_other_reason(here: Connection) -> None:
    job = keyed()
    QueueEntry.objects.update(parked="hold")
    job.reschedule(clock.now())
    assert QueueEntry.objects.get().parked == "hold"


def one_place_is_given_once(here: Connection) -> None:
    jobs = [keyed() for _ in range(3)]
    assert [let_in(here, *jobs), let_in(here, *jobs)] == [1, 0]


def places_of_other_keys_do_not_count(here: Connection) -> None:
    jobs = [keyed(), keyed("other"), keyed(tenant="other")]
    for job in jobs:
        assert let_in(here, job) == 1
        assert admitted(job) == [True]


def who_waits_takes_no_place(here: Connection) -> None:
    first, second = keyed(), keyed()
    QueueEntry.objects.filter(job_id=first.id).update(parked="hold")
    assert let_in(here, second) == 1
    assert admitted(first) == [False]


def nobody_is_admitted_early(here: Connection) -> None:
    job = keyed(delay=timedelta(seconds=4))
    assert let_in(here, job) == 0


def what_is_due_now_is_admitted(here: Connection) -> None:
    job = keyed()
    values = {"tenants": [job.tenant_id], "names": ["k"]}
    for _ in range(20):  # its time may have come before the statement did
        here.execute(
            "UPDATE jobs_queueentry SET parked = 'key', run_at = statement_timestamp() + interval '9 ms'"
        )
        assert here.execute(load("admit"), values).rowcount == 1


def who_waits_longest_is_first(here: Connection) -> None:
    late, early = keyed(), keyed()
    ago(here, early, HOUR)
    let_in(here, late)
    assert admitted(late, early) == [False, True]


def the_urgent_are_first(here: Connection) -> None:
    early, urgent = keyed(), keyed(priority=1)
    let_in(here, early)
    assert admitted(early, urgent) == [False, True]


def lower_priorities_come_after(here: Connection) -> None:
    allow(here, 3)
    jobs = [keyed(priority=n) for n in range(3)]
    assert let_in(here, *jobs) == 3


def a_type_that_allows_one_runs_alone(here: Connection) -> None:
    allow(here, 5, "test.echo")
    jobs = [keyed(), keyed()]
    assert let_in(here, *jobs) == 1


def who_runs_alone_is_not_joined(here: Connection) -> None:
    allow(here, 5, "test.echo")
    first = keyed()
    let_in(here, first)
    second = keyed(job_type="test.echo")
    assert let_in(here, second) == 0


def nobody_is_passed_by_in_the_line(here: Connection) -> None:
    allow(here, 5, "test.echo")
    first = keyed(job_type="test.echo")
    let_in(here, first)
    alone, behind = keyed(), keyed(job_type="test.echo")
    ago(here, alone, HOUR)
    assert let_in(here, first) == 0
    assert admitted(alone, behind) == [False, False]


def what_is_admitted_runs_from_now_on(here: Connection) -> None:
    job = keyed()
    ago(here, job, HOUR)
    let_in(here, job)
    assert QueueEntry.objects.get().run_at > job.created_at


def _due(here: Connection, since: timedelta = HOUR) -> list[Any]:
    now = clock.now()
    return here.execute(load("keys_due"), {"since": now - since, "now": now}).fetchall()


def what_was_seen_before_is_not_told_again(here: Connection) -> None:
    ago(here, keyed(), 2 * HOUR)
    assert _due(here) == []


def what_comes_is_told_by_its_time_alone(here: Connection) -> None:
    job = keyed(delay=timedelta(seconds=4))
    assert _due(here) == [(None, None, job.due_at)]


def who_has_a_place_is_not_told(here: Connection) -> None:
    job = keyed()
    let_in(here, job)
    assert _due(here) == []


def _waiting(here: Connection) -> list[Any]:
    return here.execute(load("keys_waiting"), {"now": clock.now() + timedelta(seconds=1)}).fetchall()


def a_full_key_is_not_swept(here: Connection) -> None:
    first = keyed()
    keyed()
    let_in(here, first)
    assert _waiting(here) == []


def a_key_with_room_is_swept(here: Connection) -> None:
    let_in(here, keyed())
    jobs = [keyed("a"), keyed(tenant="other")]
    assert sorted(_waiting(here)) == sorted(key_of(job) for job in jobs)


def who_waits_for_his_time_is_not_swept(here: Connection) -> None:
    keyed(delay=timedelta(seconds=4))
    assert _waiting(here) == []


def _breaches(here: Connection) -> list[str]:
    return [breach for breach in check().breaches if "concurrency key" in breach]


def a_full_key_is_sound(here: Connection) -> None:
    process(here)
    first = keyed()
    ago(here, keyed(), HOUR)
    ago(here, first, 2 * HOUR)
    let_in(here, first)
    assert _breaches(here) == []


def who_came_just_now_is_sound(here: Connection) -> None:
    process(here)
    keyed()
    assert _breaches(here) == []


def who_waits_for_a_worker_is_sound(here: Connection) -> None:
    ago(here, keyed(), HOUR)
    assert _breaches(here) == []


def who_was_admitted_before_the_number_was_lowered_is_sound(here: Connection) -> None:
    allow(here, 2)
    jobs = [keyed(), keyed()]
    let_in(here, *jobs)
    allow(here, 1)
    assert _breaches(here) == []


def locks_are_of_these_keys(here: Connection) -> None:
    here.execute(load("lock_keys"), {"hashes": arrays.int8s([5, 7])})
    rows = here.execute(
        "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() ORDER BY 1"
    ).fetchall()
    assert rows == [(5,), (7,)]
