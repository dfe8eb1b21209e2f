"""UN-03: entries of a type that a worker does not know, and others do, stay in their queue: it passes them once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, LiteralString

import psycopg
import pytest

from jobs.clock import DatabaseClock
from jobs.holds import hold
from jobs.ids import ceil_ms
from jobs.leases import Claimer, Looks, register
from jobs.leases.looks import COMING
from jobs.models import Job, ProcessKind
from jobs.newjob import NewJob
from tests.factories import schedule, server_time
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


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stride is a thirtieth of what is unknown; one walk at the start, no other net."""
    monkeypatch.setattr("jobs.leases.claim.STRIDE", MANY // 30)
    monkeypatch.setattr("jobs.leases.looks.SHARE", 1e6)  # no second leap
    for net in ("HOP", "SWEEP"):
        monkeypatch.setattr(f"jobs.leases.looks.{net}", 3600.0)


AGO = timedelta(minutes=1)
BOTH_SIDES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "by time": ({"delay": -2 * AGO}, {"delay": -AGO}, {"delay": -AGO / 2}),
    "by priority": ({"priority": 5}, {}, {"priority": -5}),
    "by id": ({}, {}, {}),
}
"""How what is known before, what is unknown, and what is known behind is scheduled."""


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("sides", BOTH_SIDES)
def test_un_03_what_is_known_before_and_behind_is_found_by_one_walk(
    connection: Connection, sides: str
) -> None:
    mixed, begun = sides == "by id", server_time(connection)
    for options, kind, digit in zip(BOTH_SIDES[sides], ("noop", "echo", "noop"), "18f", strict=True):
        for n in range(1 if kind == "echo" else 3):
            job = schedule(f"test.{kind}", queue=sides, **options)
            put(connection, job, begun + options.get("delay", -AGO), f"{digit * 31}{n}" if mixed else job.pk)
        if kind == "echo":
            connection.execute(
                COPIES.replace("clock_timestamp()", "run_at"), [MANY, f"{digit * 31}0" if mixed else job.pk]
            )
    claimer, recorder = stranger(connection, sides)
    stand_in: Any = recorder
    found = 0
    for _ in range(100):
        found += len(claimer.claim(stand_in, 500, 500))
        if not claimer.waiting:
            break
    assert found == 6
    strides = read(recorder, "claim", "fence", "hop")
    assert strides <= (3 * MANY if mixed else MANY / 2), "of one instant in strides, which each go on,"
    assert walks(recorder) <= 2, "and else by one look, page by page"
    recorder.seen.clear()
    for _ in range(5):
        schedule(queue=sides, delay=-timedelta(milliseconds=1))
        claimer.looks.forget()
        assert len(claimer.claim(stand_in, 500, 500)) == 1
    assert (read(recorder, "claim", "fence") <= 50, walks(recorder)) == (True, 0)


@pytest.mark.usefixtures("small")
def test_un_03_who_comes_back_before_them_costs_a_stride_and_no_walk(connection: Connection) -> None:
    known, other = (schedule(f"test.{kind}", queue="back", delay=-AGO) for kind in ("noop", "echo"))
    put(connection, known, known.due_at - AGO, known.pk)
    connection.execute(COPIES.replace("clock_timestamp()", "run_at"), [MANY, other.pk])
    claimer, recorder = stranger(connection, "back")
    stand_in: Any = recorder
    (claim,) = claimer.claim(stand_in, 500, 500)
    assert claimer.claim(stand_in, 500, 500) == []
    pair = (claim.tenant_id, claim.priority)
    recorder.seen.clear()
    for _ in range(3):
        connection.execute(
            "UPDATE jobs_queueentry SET lease_token = NULL, process_id = NULL WHERE job_id = %s", [known.pk]
        )
        claimer.ring.see(pair, 1, False, known.due_at - AGO, known.pk)
        assert len(claimer.claim(stand_in, 500, 500)) == 1
    assert read(recorder, "claim", "fence") <= 3 * 2 * (MANY / 30 + 10)


@pytest.mark.usefixtures("small")
def test_un_03_what_is_held_is_walked_once_and_then_in_strides(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.leases.claim.WALK", 0.0)
    held = schedule("test.flaky", queue="held", delay=-AGO)
    connection.execute(COPIES.replace("clock_timestamp()", "run_at"), [MANY, held.pk])
    hold("type", "test.flaky")
    mine = register(
        connection, ProcessKind.WORKER, types=["test.noop", "test.flaky"], lease=timedelta(hours=1)
    )
    recorder = Recorder(connection)
    stand_in: Any = recorder
    claimer = Claimer("held", mine, ["test.noop", "test.flaky"])
    assert claimer.claim(stand_in, 9, 9) == []
    recorder.seen.clear()
    for _ in range(3):
        known = schedule(queue="held")
        claimer.ring.see(
            (known.tenant_id, 0), 1, False, held.due_at - AGO
        )  # as if one had come back before them
        claimer.claim(stand_in, 9, 9)
        assert read(recorder, "claim", "fence") <= 40 * (MANY / 30 + 10)
        assert max(seen.read for seen in recorder.seen if seen.name == "claim") <= MANY / 30 + 10
        recorder.seen.clear()


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


def stranger(connection: Connection, queue: str) -> tuple[Claimer, Recorder]:
    """Who knows one of two types, the other of which another process knows."""
    lease = timedelta(hours=1)
    register(connection, ProcessKind.WORKER, types=["test.echo"], lease=lease)
    mine = register(connection, ProcessKind.WORKER, types=["test.noop"], lease=lease)
    return Claimer(queue, mine, ["test.noop"]), Recorder(connection)


def put(connection: Connection, job: Job, run_at: datetime, job_id: Any) -> None:
    """Its entry there, under this id."""
    connection.execute(
        "UPDATE jobs_queueentry SET run_at = %s, job_id = %s WHERE job_id = %s", [run_at, job_id, job.pk]
    )


def walks(recorder: Recorder) -> int:
    """Looks at all that is due."""
    return sum(seen.name == "look" and seen.read > MANY for seen in recorder.seen)


def read(recorder: Recorder, *names: str) -> int:
    """Rows that such statements have looked at; by default claims, since the last call."""
    rows = sum(seen.read for seen in recorder.seen if seen.name in (names or ("claim",)))
    if not names:
        recorder.seen.clear()
    return rows
