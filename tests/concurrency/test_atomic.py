from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import transaction

from dispatch.atomic import execute_atomic
from dispatch.executor import AsyncLoop
from jobs import clock, db
from jobs.context import Context
from jobs.errors import Cancelled, Fail, Retry, Snooze
from jobs.leases import end, rescue, settle
from jobs.models import Job, Outcome, Queue
from jobs.registry import registry
from jobs.results import Claim, Failed, Result, Settlement, Snoozed
from jobs.states import JobState
from tests.factories import claim, process, schedule
from tests.racing import assert_sound, beside

pytestmark = [pytest.mark.concurrency, pytest.mark.django_db(transaction=True)]

Connection = psycopg.Connection[Any]


class Body:
    """An atomic handler that has written when `written` is set, and returns when `go_on` is."""

    def __init__(self) -> None:
        self.written, self.go_on = threading.Event(), threading.Event()
        self.kill = self.spoil = False
        self.returns: Any = None

    def __call__(self, context: Context, **payload: Any) -> Any:
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO jobs_queue (name) VALUES ('written by a body')")
            self.written.set()
            assert self.go_on.wait(60)
            if self.kill:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        if self.spoil:
            transaction.set_rollback(True)
        return self.returns


def run(body: Body, held: Claim) -> Result | None:
    known = registry.get("test.atomic")
    assert known is not None
    mine = type(known)(
        "test.atomic", body, "test.atomic", None, None, known.timeout, atomic=True, exclusive=False
    )
    each = held.held
    context = Context(each.job_id, each.job_type, each.attempt, each.max_attempts, held.tenant, held.queue)
    return execute_atomic(mine, context, held, clock.now(), "default", AsyncLoop())


@pytest.fixture
def job() -> Job:
    return schedule("test.atomic", {"slug": "x"})


def wrote() -> bool:
    return Queue.objects.filter(name="written by a body").exists()


def test_its_writes_and_its_completion_commit_together(connection: Connection, job: Job) -> None:
    body = Body()
    body.go_on.set()
    assert run(body, claim(connection, job, process(connection))) is None
    assert wrote()
    assert job.state == JobState.COMPLETED
    assert_sound()


@pytest.mark.parametrize(
    ("returned", "ends"),
    [(Snooze(timedelta(hours=1)), Snoozed), (Retry(), Failed), (Fail("no"), Failed), (Cancelled(), Failed)],
    ids=["snooze", "retry", "fail", "cancelled"],
)
def test_cx_02_what_an_atomic_body_returns_to_end_its_attempt_is_no_completion(
    connection: Connection, job: Job, returned: Any, ends: type[Any]
) -> None:
    body = Body()
    body.go_on.set()
    body.returns = returned
    result = run(body, claim(connection, job, process(connection)))
    assert isinstance(result, ends)
    assert not wrote()
    assert job.state == JobState.RUNNING


def test_cx_02_a_body_that_marks_its_transaction_for_rollback_has_failed(
    connection: Connection, job: Job
) -> None:
    """Nothing would tell: not the commit, and its entry stays leased by a process that lives."""
    body, held = Body(), claim(connection, job, process(connection))
    body.go_on.set()
    body.spoil = True
    result = run(body, held)
    assert isinstance(result, Failed)
    assert "rolled back" in result.error.message
    settle(connection, [Settlement(held.held, result, None)])
    assert not wrote()
    assert_sound()


def test_a_body_that_was_taken_over_meanwhile_is_rolled_back_whole(connection: Connection, job: Job) -> None:
    mine = process(connection)
    body, held = Body(), claim(connection, job, mine)
    running = beside(lambda: run(body, held))
    assert body.written.wait(60)
    end(connection, [mine])
    assert job.id in rescue(connection).fates
    body.go_on.set()
    assert running.result(60) is None
    assert not wrote()
    assert job.state == JobState.QUEUED
    assert_sound()


def test_a_cancel_neither_waits_for_the_body_nor_undoes_its_completion(
    connection: Connection, job: Job
) -> None:
    body, held = Body(), claim(connection, job, process(connection))
    running = beside(lambda: run(body, held))
    assert body.written.wait(60)
    assert job.cancel().requested == 1  # while the body's transaction is open
    body.go_on.set()
    assert running.result(60) is None
    assert wrote()
    assert job.state == JobState.COMPLETED


def test_after_a_session_that_was_lost_before_its_commit_the_attempt_has_failed(
    connection: Connection, job: Job
) -> None:
    body, held = Body(), claim(connection, job, process(connection))
    body.kill = True
    body.go_on.set()
    result = beside(lambda: run(body, held)).result(60)
    assert isinstance(result, Failed)
    settle(connection, [Settlement(held.held, result, None)])
    assert not wrote()
    assert not Outcome.objects.filter(job_id=job.id).exists()
    assert_sound()


def test_a_commit_in_doubt_is_asked_about_until_the_database_answers(
    connection: Connection, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its session is gone and so is the server for a while: without an answer nobody could settle the job."""
    body, held = Body(), claim(connection, job, process(connection))
    body.kill = True
    body.go_on.set()
    refused = iter(["first", "second"])
    connect = db.connect

    def restarting(using: str, **options: Any) -> Connection:
        if refusal := next(refused, None):
            raise psycopg.OperationalError(f"the database system is starting up ({refusal})")
        return connect(using, **options)

    monkeypatch.setattr(db, "connect", restarting)
    result = beside(lambda: run(body, held)).result(60)
    assert next(refused, None) is None
    assert isinstance(result, Failed)
    settle(connection, [Settlement(held.held, result, None)])
    assert_sound()
