"""However large payloads are together, a process holds few of them at once."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from pytest_django import Settings

from dispatch.pace import Pace
from jobs import bulk, managers, pieces
from jobs.backfill import backfill
from jobs.errors import InvalidJob
from jobs.leases import fetch
from jobs.models import Job
from jobs.newjob import NewJob
from jobs.results import Claim
from tests.db.test_ticker import define
from tests.factories import come_due, process, take

pytestmark = pytest.mark.django_db
Connection = psycopg.Connection[Any]
MEGABYTE = 1_000_000
LARGE = {"value": "x" * MEGABYTE}
"""Compressed it is stored in little."""


@pytest.fixture(autouse=True)
def _allowed(settings: Settings) -> None:
    settings.SCHEDULER = {"payload_bytes": 2 * MEGABYTE, "result_bytes": 2 * MEGABYTE}


def large(count: int, delay: timedelta = timedelta()) -> None:
    Job.objects.schedule_many(
        NewJob(job_type="test.echo", payload=LARGE, delay=delay, queue="q") for _ in range(count)
    )


def claims(here: Connection) -> list[Claim]:
    come_due(here)
    return take(here, "q", process(here), 500, 500)


@pytest.mark.parametrize("delay", [timedelta(), -timedelta(days=1)])
def test_a_claim_of_large_payloads_brings_none_and_fetch_as_many_as_there_is_room_for(
    here: Connection, delay: timedelta
) -> None:
    large(12, delay)
    taken = claims(here)
    assert [claim.payload for claim in taken] == [None] * 12
    full, missing = fetch(here, taken, 4 * MEGABYTE)
    assert missing == []
    assert [claim.held for claim in full] == [claim.held for claim in taken]
    brought = [claim for claim in full if claim.payload is not None]
    assert 4 <= len(brought) <= 5
    assert [claim for claim in full if claim.payload is None] == taken[len(brought) :]


def test_without_a_bound_all_are_fetched(here: Connection) -> None:
    large(5)
    full, missing = fetch(here, claims(here))
    assert (sum(claim.payload is not None for claim in full), missing) == (5, [])


def test_the_first_is_fetched_however_little_room_there_is(here: Connection) -> None:
    large(3)
    full, _ = fetch(here, claims(here), 1)
    assert [claim.payload is not None for claim in full] == [True, False, False]


def test_a_bound_leaves_small_ones_and_gone_ones_as_they_were(here: Connection) -> None:
    Job.objects.schedule_many([NewJob(job_type="test.noop", queue="q", delay=-timedelta(days=1))] * 50)
    taken = claims(here)
    here.execute("DELETE FROM jobs_job WHERE id = %s", [taken[7].held.job_id])
    full, missing = fetch(here, taken, 4 * MEGABYTE)
    assert [claim.held for claim in missing] == [taken[7].held]
    assert {claim.payload for claim in full} == {"{}"}
    assert len(full) == 49


def test_a_worker_claims_ahead_what_fits() -> None:
    pace = Pace()
    assert pace.fit("q", 32 * MEGABYTE) >= 1_000_000
    pace.weigh("q", MEGABYTE)
    assert pace.fit("q", 32 * MEGABYTE) == 32
    assert pace.fit("q", -5) == 0
    assert pace.fit("other", 32 * MEGABYTE) >= 1_000_000
    pace.weigh("q", 0.0)
    assert pace.fit("q", 32 * MEGABYTE) == 64


class Counted:
    """New jobs, and how many of them were written when each was asked for."""

    def __init__(self, *jobs: NewJob) -> None:
        self.jobs, self.written = jobs, list[int]()

    def __iter__(self) -> Iterator[NewJob]:
        for job in self.jobs:
            self.written.append(Job.objects.count())
            yield job


def test_many_are_written_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_ROWS", 2)
    jobs = Counted(*[NewJob(job_type="test.echo", payload={"value": n}) for n in range(5)])
    answers = Job.objects.schedule_many(jobs)
    assert jobs.written == [0, 0, 2, 2, 4]
    assert [Job.objects.get(pk=job_id).payload["value"] for job_id, _ in answers] == [0, 1, 2, 3, 4]


def test_those_with_a_key_wait_for_the_end_and_are_told_in_their_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Keys are taken in one order, or two callers would wait for each other."""
    monkeypatch.setattr(pieces, "PIECE_ROWS", 2)
    keys = ["b", None, "a", "b", None, "a", None]
    jobs = Counted(
        *[
            NewJob(job_type="test.echo", payload={"value": n}, unique_key=key, tenant=f"t{n % 1}")
            for n, key in enumerate(keys)
        ]
    )
    answers = Job.objects.schedule_many(jobs)
    assert jobs.written == [0, 0, 1, 1, 1, 1, 2]
    assert [created for _, created in answers] == [True, True, True, False, True, False, True]
    assert answers[3][0] == answers[0][0]
    assert answers[5][0] == answers[2][0]
    values = [Job.objects.get(pk=job_id).payload["value"] for job_id, _ in answers]
    assert values == [0, 1, 2, 0, 4, 2, 6]


def test_one_wrong_job_behind_written_ones_refuses_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_ROWS", 2)
    jobs = [NewJob(job_type="test.noop") for _ in range(5)]
    with pytest.raises(InvalidJob, match=r"^jobs\[5\]\.priority"):
        Job.objects.schedule_many([*jobs, NewJob(job_type="test.noop", priority=900)])
    assert not Job.objects.exists()


def test_a_hundred_megabytes_from_an_iterator_never_are_in_memory(here: Connection) -> None:
    tracemalloc.start()
    large(100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert Job.objects.count() == 100
    assert peak < 40 * MEGABYTE


def test_a_backfill_has_its_payload_once_in_memory(here: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = define(payload=LARGE, job_type="test.echo", since=timedelta(hours=3))
    texts = list[str]()
    real = bulk.insert_many

    def insert_many(cursor: Any, rows: Any, until: Any) -> None:
        texts.extend(row.payload for row in rows)
        real(cursor, rows[:2], until)

    monkeypatch.setattr("jobs.backfill.insert_many", insert_many)
    now = definition.created_at
    backfill(definition, now - timedelta(hours=2), now - timedelta(hours=1))
    assert len(texts) >= 60
    assert len({id(text) for text in texts}) == 1


@pytest.mark.parametrize("late", [False, True])
def test_what_is_in_memory_is_checked_while_the_server_writes(
    monkeypatch: pytest.MonkeyPatch, *, late: bool
) -> None:
    """All of the next piece when its turn comes; in the order of the jobs, whatever they wait by."""
    monkeypatch.setattr(pieces, "PIECE_ROWS", 4)
    monkeypatch.setattr(pieces, "STEP", 1)
    monkeypatch.setattr(bulk, "_CHUNK", 2)
    delay = timedelta(days=1) if late else None
    checked: list[int] = []
    real = pieces.Pieces._prepare

    def prepare(self: pieces.Pieces, index: int, new: NewJob) -> Any:
        checked.append(index)
        return real(self, index, new)

    written: list[int] = []

    def insert_many(cursor: Any, rows: Any, *given: Any) -> None:
        written.append(len(checked))
        bulk.insert_many(cursor, rows, *given)
        written.append(len(checked))

    monkeypatch.setattr(pieces.Pieces, "_prepare", prepare)
    monkeypatch.setattr(managers, "insert_many", insert_many)
    answers = Job.objects.schedule_many(
        [NewJob(job_type="test.echo", payload={"value": n}, delay=delay) for n in range(10)]
    )
    assert written == [4, 8, 8, 10, 10, 10]
    assert checked == list(range(10))
    assert [Job.objects.get(pk=job_id).payload["value"] for job_id, _ in answers] == list(range(10))
