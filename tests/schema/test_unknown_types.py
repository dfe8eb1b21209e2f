"""UN-03: entries of a type that a worker does not know, and others do, stay in their queue: it passes them once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, LiteralString

import psycopg
import pytest

from jobs.clock import DatabaseClock
from jobs.ids import ceil_ms
from jobs.leases import Claimer, Looks, register
from jobs.leases.looks import COMING
from jobs.models import Job, ProcessKind
from jobs.newjob import NewJob
from tests.factories import schedule
from tests.schema.explain import Recorder
from tests.waiting import wait_until

Connection = psycopg.Connection[Any]
MANY = 3_000
COPIES: LiteralString = (
    "INSERT INTO jobs_queueentry (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, "
    "max_attempts, crashes, cancel_requested) SELECT gen_random_uuid(), due_at, clock_timestamp(), tenant_id, queue, "
    "job_type, priority, 0, max_attempts, 0, false FROM jobs_queueentry, generate_series(1, %s) WHERE job_id = %s"
)


def test_un_03_what_only_others_know_is_passed_once_and_not_by_each_claim(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = schedule("test.echo", queue="q", delay=-timedelta(minutes=1))
    connection.execute(COPIES.replace("clock_timestamp()", "run_at"), [MANY, other.pk])
    Job.objects.schedule_many([NewJob(job_type="test.noop", queue="q", delay=-timedelta(seconds=1))] * 5)
    lease = timedelta(hours=1)
    register(connection, ProcessKind.WORKER, types=["test.echo"], lease=lease)
    mine = register(connection, ProcessKind.WORKER, types=["test.noop"], lease=lease)
    recorder = Recorder(connection)
    stand_in: Any = recorder
    for net in ("HOP", "SWEEP"):  # a walk a minute, and one at the start
        monkeypatch.setattr(f"jobs.leases.looks.{net}", 3600.0)
    claimer = Claimer("q", mine, ["test.noop"])
    for _ in range(5):
        assert len(claimer.claim(stand_in, 1, 1)) == 1
    assert claimer.claim(stand_in, 1, 1) == []
    looks = [seen for seen in recorder.seen if seen.name == "look" and seen.read > MANY]
    assert looks, "a start meets what others know,"
    assert all(seen.blocks < MANY / 10 for seen in looks), "page by page, in whatever order they are claimed,"
    assert read(recorder) <= 100, "and no claim does"
    more = 200
    for _ in range(5):
        connection.execute(COPIES, [more, other.pk])
        claimer.looks.forget()
        assert claimer.claim(stand_in, 1, 1) == []
        assert claimer.line.unknown
        assert read(recorder) == 0, "they wake nobody who does not know them"
    for passed in (5 * more, 0):
        schedule(queue="q", delay=-timedelta(milliseconds=1))
        claimer.looks.forget()
        assert len(claimer.claim(stand_in, 1, 1)) == 1
        assert read(recorder) <= passed + 20


def test_un_03_no_sweep_goes_back_behind_what_is_unknown(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = schedule("test.echo", queue="q", delay=-timedelta(minutes=1))
    connection.execute(COPIES.replace("clock_timestamp()", "run_at"), [MANY, other.pk])
    lease = timedelta(hours=1)
    register(connection, ProcessKind.WORKER, types=["test.echo"], lease=lease)
    mine = register(connection, ProcessKind.WORKER, types=["test.noop"], lease=lease)
    monkeypatch.setattr("jobs.leases.looks.SWEEP", 0.0)
    monkeypatch.setattr("jobs.leases.looks.SHARE", 0)
    recorder = Recorder(connection)
    stand_in: Any = recorder
    claimer = Claimer("q", mine, ["test.noop"])

    def claimed() -> int:
        schedule(queue="q", delay=-timedelta(milliseconds=1))
        claimer.looks.forget()
        recorder.seen.clear()
        assert len(claimer.claim(stand_in, 1, 1)) == 1
        return sum(seen.read for seen in recorder.seen if seen.name in ("claim", "sweep"))

    wait_until(lambda: claimed() <= 40, what="claims that pass nothing")
    assert max(claimed() for _ in range(5)) <= 40


def test_un_03_what_comes_and_is_unknown_wakes_nobody_and_hides_nobody(connection: Connection) -> None:
    clock = DatabaseClock()
    looks = Looks(["q"], ["test.noop"], clock=clock)
    looks.look(connection)
    soon = ceil_ms(clock.now() + timedelta(seconds=4))
    for n in range(3):
        schedule("test.echo", queue="q", due_at=soon + timedelta(milliseconds=n))
    schedule(queue="q", due_at=soon + timedelta(milliseconds=500))
    looks.forget()
    looks.look(connection)
    line = looks.lines["q"]
    assert [each[4] for each in line.coming] == [soon + timedelta(milliseconds=500)]
    assert not line.more
    for n in range(COMING):
        schedule("test.echo", queue="q", due_at=soon + timedelta(milliseconds=100 + n))
    looks.look(connection)
    assert (line.coming, line.more) == ([], True)
    assert soon <= line.last_at < soon + timedelta(milliseconds=500), "it is looked for when these have come"


def read(recorder: Recorder) -> int:
    """Rows that claims have looked at since the last call."""
    rows = sum(seen.read for seen in recorder.seen if seen.name == "claim")
    recorder.seen.clear()
    return rows
