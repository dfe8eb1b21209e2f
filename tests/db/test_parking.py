from __future__ import annotations

import time
from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg
import pytest

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


def test_a_claimer_says_that_it_met_an_unknown_type_and_passes_it_over_for_a_while(
    here: Connection, unknown: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = claimer(here)
    mine.claim(here, 5, 5)
    assert not mine.met_unknown
    assert mine.claim(here, 5, 5) == []
    assert mine.met_unknown
    assert mine.claim(here, 5, 5) == []
    assert not mine.met_unknown
    later = time.monotonic() + 2.0
    monkeypatch.setattr("jobs.leases.claim.time.monotonic", lambda: later)
    mine.claim(here, 5, 5)
    assert mine.met_unknown


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
    mine = claimer(here)
    park(here, "q")
    assert unpark(here, ["test.noop", "something.else"]) == 0
    assert unpark(here, ["test.echo"]) == 1
    entry = QueueEntry.objects.get(job_id=unknown.id)
    assert entry.parked is None
    assert entry.run_at > unknown.created_at, "it must not lie behind what claimers have passed"
    come_due(here)
    mine.types = ["test.echo"]
    assert [each.held.job_id for each in mine.claim(here, 5, 5)] == [unknown.id]


def test_only_what_was_parked_for_its_type_is_unparked_by_its_type(here: Connection, unknown: Job) -> None:
    QueueEntry.objects.update(parked="hold")
    assert unpark(here, ["test.echo"]) == 0
