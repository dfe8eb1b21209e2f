from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from dispatch.intake import Intake
from jobs.clock import DatabaseClock
from jobs.leases import Claimer, end, park, register, unpark
from jobs.models import Job, ProcessKind, QueueEntry
from tests.factories import come_due, schedule

Connection = psycopg.Connection[Any]


def worker(here: Connection, *types: str) -> int:
    return register(here, ProcessKind.WORKER, types=types, lease=timedelta(hours=1))


@pytest.fixture
def unknown(here: Connection) -> Job:
    """A due entry of a type that the worker of these tests does not know, before one that it knows."""
    job = schedule("test.echo", queue="q")
    schedule("test.noop", queue="q")
    come_due(here)
    return job


def claimer(here: Connection) -> Claimer:
    return Claimer("q", worker(here, "test.noop"), ["test.noop"])


def test_an_unknown_type_is_left_and_does_not_hide_the_known_one(here: Connection, unknown: Job) -> None:
    taken = claimer(here).claim(here, 5, 5)
    assert [each.held.job_type for each in taken] == ["test.noop"]
    assert QueueEntry.objects.get(job_id=unknown.id).lease_token is None


def intake(here: Connection) -> Intake:
    clock = DatabaseClock()
    clock.read(here)
    return Intake(["q", "r"], worker(here, "test.noop"), ["test.noop"], clock, suspects=False)


def parked(here: Connection) -> set[str]:
    return set(QueueEntry.objects.filter(parked="type").values_list("queue", flat=True))


def test_a_worker_that_meets_an_unknown_type_parks_it_and_claims_the_rest(
    here: Connection, unknown: Job
) -> None:
    mine = intake(here)
    assert mine.ready(here) == ["q"]
    assert QueueEntry.objects.get(job_id=unknown.id).parked == "type"
    claims, missing = mine.claim(here, "q", 5, 5)
    assert [each.held.job_type for each in claims] == ["test.noop"]
    assert not missing


def test_a_worker_parks_one_queue_a_second_and_none_is_forgotten(
    here: Connection, unknown: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule("test.echo", queue="r")
    come_due(here)
    mine, now = intake(here), 1e6
    monkeypatch.setattr("dispatch.intake.boottime", lambda: now)
    found = []
    for seconds in (0.0, 0.9, 0.2):
        now += seconds
        mine.forget()
        mine.ready(here)
        found.append(parked(here))
    assert found == [{"q"}, {"q"}, {"q", "r"}]


def test_a_type_that_another_process_knows_is_left_to_it(here: Connection, unknown: Job) -> None:
    worker(here, "test.echo")
    mine = intake(here)
    mine.ready(here)
    assert parked(here) == set()
    assert [each.held.job_type for each in mine.claim(here, "q", 5, 5)[0]] == ["test.noop"]


def test_what_no_live_process_knows_is_parked_and_never_failed(here: Connection, unknown: Job) -> None:
    worker(here, "test.noop")
    assert park(here, "q") == Counter({"test.echo": 1})
    assert QueueEntry.objects.get(job_id=unknown.id).parked == "type"
    assert QueueEntry.objects.exclude(job_id=unknown.id).get().parked is None
    assert park(here, "q") == Counter()


def test_what_another_live_process_knows_is_not_parked(here: Connection, unknown: Job) -> None:
    worker(here, "test.noop")
    other = worker(here, "test.echo")
    assert park(here, "q") == Counter()
    end(here, [other])
    assert park(here, "q") == Counter({"test.echo": 1})


def test_a_process_whose_lease_has_run_out_knows_nothing(here: Connection, unknown: Job) -> None:
    worker(here, "test.noop", "test.echo")
    here.execute("UPDATE jobs_process SET lease_expires_at = clock_timestamp()")
    assert park(here, "q").total() == 2


def test_what_is_not_due_or_is_running_is_not_parked(here: Connection) -> None:
    running = schedule("test.echo", queue="q")
    come_due(here)
    assert Claimer("q", worker(here, "test.echo"), ["test.echo"]).claim(here, 1, 1)
    schedule("test.echo", queue="q", delay=timedelta(seconds=4))
    here.execute("UPDATE jobs_process SET types = '{}'")
    assert park(here, "q") == Counter()
    assert QueueEntry.objects.get(job_id=running.id).parked is None


def test_entries_of_another_queue_are_not_parked(here: Connection, unknown: Job) -> None:
    assert park(here, "other") == Counter()


def test_an_unparked_entry_runs(here: Connection, unknown: Job) -> None:
    worker(here, "test.noop")
    park(here, "q")
    assert unpark(here, ["test.noop", "something.else"]) == 0
    assert unpark(here, ["test.echo"]) == 1
    entry = QueueEntry.objects.get(job_id=unknown.id)
    assert entry.parked is None
    assert entry.run_at > unknown.created_at, "it must not lie behind what claimers have passed"
    come_due(here)
    mine = Claimer("q", worker(here, "test.echo"), ["test.echo"])
    assert [each.held.job_id for each in mine.claim(here, 5, 5)] == [unknown.id]


def test_only_what_was_parked_for_its_type_is_unparked_by_its_type(here: Connection, unknown: Job) -> None:
    QueueEntry.objects.update(parked="hold")
    assert unpark(here, ["test.echo"]) == 0


def test_un_03_parking_goes_on_until_nothing_unknown_is_left(
    here: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are: the next hop would come a minute later."""
    job = schedule("test.echo", queue="q")
    here.execute(
        "INSERT INTO jobs_queueentry (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, "
        "max_attempts, crashes, cancel_requested) SELECT gen_random_uuid(), due_at, run_at, tenant_id, queue, job_type, "
        "priority, attempt, max_attempts, crashes, false FROM jobs_queueentry, generate_series(1, 5100) "
        "WHERE job_id = %s",
        [job.pk],
    )
    come_due(here)
    mine, now = intake(here), 1e6
    monkeypatch.setattr("dispatch.intake.boottime", lambda: now)
    found = []
    for _ in range(3):
        mine.forget()
        mine.ready(here)
        found.append(QueueEntry.objects.filter(parked="type").count())
        now += 1.0
    assert found == [5000, 5101, 5101]


def test_parking_takes_no_more_than_a_share_of_the_time(
    here: Connection, unknown: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule("test.echo", queue="r")
    come_due(here)
    mine, now = intake(here), 1e6

    def slowly(*args: Any) -> Counter[str]:
        nonlocal now
        now += 2.0
        return park(*args)

    monkeypatch.setattr("dispatch.intake.boottime", lambda: now)
    monkeypatch.setattr("dispatch.intake.park", slowly)
    found = []
    for seconds in (0.0, 30.0, 8.0):
        now += seconds
        mine.forget()
        mine.ready(here)
        found.append(parked(here))
    assert found == [{"q"}, {"q"}, {"q", "r"}]
