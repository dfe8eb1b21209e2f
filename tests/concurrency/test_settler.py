"""The settler writes what it can: one result that spoils its batch takes no other along, whatever is wrong with it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from dispatch import late, settler
from dispatch.settler import Settler
from jobs import leases
from jobs.leases import Settled
from jobs.models import Attempt, Job, Outcome, QueueEntry
from jobs.newjob import NewJob
from jobs.partitions import day_of, ensure
from jobs.results import Claim, Completed, Failed, Held, Result, Settlement
from jobs.sql import leaf
from jobs.text import ErrorText
from tests.factories import claim, process, schedule, take
from tests.racing import assert_sound
from tests.waiting import wait_until

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]
Connection = psycopg.Connection[Any]
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)

POISON = Completed('"\\u0000"')
"""What jsonb does not take; `encode` would have refused it."""
UNSPEAKABLE = Failed(ErrorText("ValueError", "a\0b", "Traceback …\0", "f" * 16), DAY, final=True)
"""An error that no column takes."""


class Bench:
    """A settler, and what it said it had written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.settled: list[Settled] = []
        self.failures = 0

        def settle(connection: Connection, batch: Sequence[Settlement]) -> Settled:
            try:
                return real(connection, batch)
            except psycopg.Error:
                self.failures += 1
                raise

        real: Callable[..., Settled] = leases.settle
        monkeypatch.setattr(settler, "settle", settle)
        self.settler = Settler("default", "punctual test", self.settled.append, lambda: None)
        self.settler.start()

    def put(self, claims: Sequence[Claim], result: Result) -> None:
        for each in claims:
            self.settler.put(Settlement(each.held, result, None))

    def written(self, count: int) -> None:
        wait_until(lambda: sum(len(each.fates) for each in self.settled) >= count)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def claims(connection: Connection, count: int) -> list[Claim]:
    Job.objects.schedule_many([NewJob(job_type="test.noop", delay=-SECOND)] * count)
    found: list[Claim] = []
    mine = process(connection)

    def all_taken() -> bool:
        found.extend(take(connection, "test.noop", mine, 500, 500))
        return len(found) == count

    wait_until(all_taken)
    return found


def test_one_poison_result_in_a_batch_of_500_costs_the_others_nothing(
    connection: Connection, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late, "WAIT", (0.05, 0.1))
    mine = claims(connection, 500)
    bench.put(mine[:250], Completed())
    bench.put(mine[250:251], POISON)
    bench.put(mine[251:], Completed())
    bench.settler.finish()
    assert Outcome.objects.filter(state="completed").count() == 500
    bad = Outcome.objects.get(job_id=mine[250].held.job_id)
    assert (bad.result, bad.error) == (None, "the result could not be written")
    assert 1 <= bench.failures <= 12  # halved
    assert_sound()


def test_an_error_that_cannot_be_written_is_a_failure_all_the_same(
    connection: Connection, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late, "WAIT", (0.05, 0.1))
    mine = claims(connection, 20)
    bench.put(mine[:1], UNSPEAKABLE)
    bench.put(mine[1:], Completed())
    bench.written(20)
    bench.settler.finish()
    entry = QueueEntry.objects.get()
    assert (entry.job_id, entry.lease_token, entry.waits) == (mine[0].held.job_id, None, "retry")
    attempt = Attempt.objects.get(job_id=mine[0].held.job_id)
    assert attempt.error_class.startswith("psycopg")
    assert_sound()


def test_a_page_that_is_broken_holds_up_no_result_but_its_own(
    connection: Connection, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's error says which: class XX, which psycopg sorts with those of a server that is gone."""
    monkeypatch.setattr(late, "WAIT", (0.05, 0.1))
    mine = claims(connection, 20)
    with broken_page(connection, mine[7]):
        bench.put(mine, Completed())
        bench.written(19)
        assert not Outcome.objects.filter(job_id=mine[7].held.job_id).exists()
    bench.settler.finish()
    assert Outcome.objects.filter(state="completed").count() == 20
    assert_sound()


@contextmanager
def broken_page(connection: Connection, claim: Claim) -> Iterator[None]:
    """While it lasts this job's outcome cannot be written."""
    table = f'"{leaf("jobs_outcome", day_of(claim.held.due_at))}"'
    connection.execute(
        "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE 'invalid page in block 7' USING ERRCODE = 'XX001'; END $$"
    )
    connection.execute(
        f"CREATE TRIGGER broken BEFORE INSERT ON {table} FOR EACH ROW "
        f"WHEN (NEW.job_id = '{claim.held.job_id}') EXECUTE FUNCTION broken()"
    )
    try:
        yield
    finally:
        connection.execute("DROP FUNCTION broken CASCADE")


@pytest.fixture
def dropped(connection: Connection) -> Iterator[Claim]:
    """A claim of yesterday, whose leaf for outcomes is gone."""
    held = claim(connection, schedule(delay=-DAY), process(connection))
    yesterday = day_of(held.held.due_at)
    connection.execute(f'DROP TABLE "{leaf("jobs_outcome", yesterday)}"')
    yield held
    ensure([yesterday])


def test_what_cannot_be_written_for_long_spoils_no_later_batch_and_is_told_once(
    connection: Connection,
    bench: Bench,
    dropped: Claim,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(late, "WAIT", (3600.0, 3600.0))
    with caplog.at_level(logging.ERROR):
        bench.put([dropped], Completed())
        wait_until(lambda: bench.failures)
        failures = bench.failures
        for n, each in enumerate(claims(connection, 20), start=1):
            bench.put([each], Completed())
            bench.written(n)
        assert bench.failures == failures
        ensure([day_of(dropped.held.due_at)])
        bench.settler.finish()
    assert Outcome.objects.count() == 21
    assert [record.message for record in caplog.records] == ["a result cannot be written"]


def test_it_is_tried_again_until_its_day_is_there(
    connection: Connection,
    bench: Bench,
    dropped: Claim,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(late, "WAIT", (0.02, 0.1))
    with caplog.at_level(logging.ERROR):
        bench.put([dropped], Completed())
        wait_until(lambda: bench.failures >= 3)
        ensure([day_of(dropped.held.due_at)])
        bench.written(1)
    bench.settler.finish()
    assert Outcome.objects.get().job_id == dropped.held.job_id
    said = [record.message for record in caplog.records]
    assert said.count("a result cannot be written") == 1
    assert "results still cannot be written" in said


def test_each_further_try_waits_twice_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("dispatch.late.time.monotonic", lambda: now)
    waits: Any = late.Late()
    one = Settlement(Held(uuid4(), uuid4(), 1, "test.noop", 1, 20, 0), Completed(), None)
    found = []
    for _ in range(7):
        waits.add(one)
        found.append(waits.due_in)
        waits.take()
    assert found == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert waits.due_in is None
    waits.tried()
    waits.add(one)
    assert waits.due_in == 1.0
