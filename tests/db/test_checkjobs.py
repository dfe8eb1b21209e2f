from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command

from jobs import clock, invariant
from jobs.invariant import check
from jobs.models import Job
from jobs.partitions import day_of, ensure
from jobs.results import Completed
from jobs.sql import leaf
from jobs.states import JobState
from tests.factories import claim, failed, finish, job_in, process, schedule
from tests.keyed import keyed
from tests.schema.guards_keys import ago

pytestmark = pytest.mark.django_db(transaction=True)

Connection = psycopg.Connection[Any]

_TIMER = (
    "INSERT INTO jobs_timer (job_id, due_at, tenant_id, queue, job_type, priority, max_attempts) "
    "SELECT id, due_at, tenant_id, queue, job_type, 0, 5 FROM jobs_job WHERE id = %s"
)
_ENTRY = (
    "INSERT INTO jobs_queueentry (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, max_attempts, "
    "crashes, cancel_requested) SELECT id, due_at, due_at, tenant_id, queue, job_type, 0, 0, 5, 0, false "
    "FROM jobs_job WHERE id = %s"
)


def run() -> str:
    """What the command prints; CommandError when it exits with 1."""
    out = StringIO()
    call_command("checkjobs", stdout=out, stderr=out)
    return out.getvalue()


def is_named(job: Job, what: str) -> bool:
    errors = StringIO()
    with pytest.raises(CommandError, match="breach"):
        call_command("checkjobs", stdout=StringIO(), stderr=errors)
    return f"{job.id} {what}" in errors.getvalue()


def test_a_sound_database_is_clean_and_its_jobs_are_counted(connection: Connection) -> None:
    for state in JobState:
        job_in(state, connection, queue=state.value)
    printed = run()
    assert printed.endswith("clean\n")
    counts = {words[0]: words[1] for line in printed.splitlines() if len(words := line.split()) == 2}
    assert counts == {state.value: "1" for state in JobState}


def test_a_job_in_no_place_is_named(connection: Connection) -> None:
    job = schedule(delay=timedelta(hours=1))
    connection.execute("DELETE FROM jobs_timer")
    assert is_named(job, "is in no place")


@pytest.mark.parametrize(
    ("state", "plant", "what"),
    [
        (JobState.QUEUED, _TIMER, "has entry and timer"),
        (JobState.COMPLETED, _TIMER, "has outcome and timer"),
        (JobState.COMPLETED, _ENTRY, "has entry and outcome"),
    ],
)
def test_a_job_in_two_places_is_named(connection: Connection, state: JobState, plant: Any, what: str) -> None:
    job = job_in(state, connection)
    connection.execute(plant, [job.id])
    assert is_named(job, what)


@pytest.mark.parametrize(
    ("state", "what"),
    [
        (JobState.SCHEDULED, "has timer but no job row"),
        (JobState.RUNNING, "has entry but no job row"),
        (JobState.FAILED, "has outcome but no job row"),
        (JobState.FAILED, "has an attempt but no job row"),
    ],
)
def test_a_satellite_without_its_job_is_named(connection: Connection, state: JobState, what: str) -> None:
    job = job_in(state, connection)
    connection.execute("DELETE FROM jobs_job")
    assert is_named(job, what)


def test_an_entry_of_a_day_that_was_dropped_by_hand_is_named(connection: Connection) -> None:
    far = clock.now() + timedelta(days=200)
    job = schedule(due_at=far)
    job.reschedule(clock.now() + timedelta(hours=1))
    for parent in ("jobs_outcome", "jobs_attempt", "jobs_timer", "jobs_job", "jobs_crontick"):
        connection.execute(f'DROP TABLE "{leaf(parent, day_of(job.due_at))}"')
    assert is_named(job, "has entry but no job row")


def test_a_missing_leaf_is_named(connection: Connection) -> None:
    day = day_of(clock.now() + timedelta(days=201))
    ensure([day])
    connection.execute(f'DROP TABLE "{leaf("jobs_outcome", day)}"')
    try:
        assert check().breaches == [f"day {day} lacks its leaves of jobs_outcome"]
    finally:
        ensure([day])


def test_a_key_that_an_ended_job_still_holds_is_named(connection: Connection) -> None:
    job = schedule(unique_key="k")
    connection.execute("ALTER TABLE jobs_uniquekey RENAME TO away")
    connection.execute("CREATE VIEW jobs_uniquekey AS SELECT * FROM away WHERE false")
    finish(connection, claim(connection, job, process(connection)), Completed())
    connection.execute("DROP VIEW jobs_uniquekey")
    connection.execute("ALTER TABLE away RENAME TO jobs_uniquekey")
    assert is_named(job, "has ended but holds a unique key")


def test_more_of_a_concurrency_key_than_its_type_allows_are_named(connection: Connection) -> None:
    first, second = keyed(), keyed()
    assert check().clean
    connection.execute("UPDATE jobs_queueentry SET parked = NULL")
    assert is_named(
        max(first, second, key=lambda job: job.id), "runs or may run with 1 others of its concurrency key 'k'"
    )


def test_a_job_that_waits_for_a_key_with_room_is_named(connection: Connection) -> None:
    process(connection)
    first, second = keyed(), keyed()
    ago(connection, second, timedelta(minutes=1))
    assert check().clean
    connection.execute("UPDATE jobs_queueentry SET parked = 'type' WHERE job_id = %s", [first.id])
    assert is_named(second, "waits for its concurrency key 'k', which has room: 0 of 1")


def test_a_job_that_waits_for_its_retry_holds_its_key_rightly(connection: Connection) -> None:
    job = schedule(unique_key="k")
    finish(connection, claim(connection, job, process(connection)), failed())
    assert check().clean


def test_so_many_breaches_that_nobody_reads_them_are_cut_short(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a leaf was dropped by hand: never all of them in memory."""
    monkeypatch.setattr(invariant, "OF_A_SPAN", 3)
    monkeypatch.setattr(invariant, "MOST", 5)
    noon = clock.now().replace(hour=12, minute=0, second=0, microsecond=0)
    for days in (1, 1, 1, 1, 2, 2, 2, 3):
        schedule(due_at=noon + timedelta(days=days))
    connection.execute("DELETE FROM jobs_timer")
    breaches = invariant.check(span=timedelta(days=1)).breaches
    of_a_day = [*["is in no place"] * 3, "more of those due"]
    kinds = [*of_a_day, *of_a_day, "was not looked at"]
    assert [kind in breach for kind, breach in zip(kinds, breaches, strict=True)] == [True] * 9


def test_keys_are_looked_at_a_piece_at_a_time(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invariant, "KEYS", 2)
    jobs = [schedule(unique_key=f"k{n}", delay=timedelta(hours=n % 2)) for n in range(7)]
    assert invariant.check(span=timedelta(days=1)).clean
    for job in jobs[1], jobs[6]:
        job.cancel()
    connection.execute(
        "INSERT INTO jobs_uniquekey (tenant_id, job_type, key, job_id) "
        "SELECT 1, 'x', job_id::text, job_id FROM jobs_outcome"
    )
    breaches = invariant.check(span=timedelta(days=1)).breaches
    assert {breach.split()[1] for breach in breaches} == {str(jobs[1].pk), str(jobs[6].pk)}
