"""Several dispatchers and an operator at one operation: each chunk is done once, and stop means stop."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connections, transaction

from jobs import operations
from jobs.models import Job, Operation, OperationChunk, Outcome
from jobs.newjob import NewJob
from tests.db.test_admin_tools import user_with
from tests.factories import Connection, claim, process
from tests.racing import assert_sound, at_once, beside, pid_of_django, wait_for_waiter

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]


def operation_on(count: int, chunk: int) -> tuple[Any, Operation]:
    boss = user_with("cancel_job", "bulk_job")
    Job.objects.schedule_many(
        [NewJob(job_type="test.noop", delay=timedelta(hours=1, seconds=n), group="g") for n in range(count)]
    )
    made = operations.submit(boss, "cancel", "group:g due:now..+2h", "why", rate=10_000)
    Operation.objects.update(chunk_size=chunk)
    return boss, made


def work(operation: Operation) -> int:
    """Chunks until it is over, whatever the others do."""
    done = 0
    try:
        while True:
            looked = operations.run_chunk()
            done += looked is not None
            Operation.objects.filter(pk=operation.pk).update(next_at=operation.created_at)
            if Operation.objects.get(pk=operation.pk).ended_at:
                return done
    finally:
        connections.close_all()


def test_two_dispatchers_do_each_chunk_once() -> None:
    _, operation = operation_on(60, chunk=3)
    done = at_once([lambda connection: work(operation)] * 3)
    operation.refresh_from_db()
    pieces = OperationChunk.objects.filter(operation=operation)
    ids = [job_id for piece in pieces for job_id in piece.ids]
    assert len(ids) == len(set(ids)) == operation.changed == Outcome.objects.count() == 60
    assert sum(done) == operation.chunks == pieces.count()
    assert_sound()


def test_stop_waits_for_the_chunk_and_then_nothing_more_is_done(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    boss, operation = operation_on(10, chunk=2)
    with transaction.atomic():
        assert operations.run_chunk() == 2  # its transaction stays open
        stopped = beside(lambda: operations.stop(boss, operation.pk, "enough"))
        wait_for_waiter(pid_of_django())
        assert not stopped.done()
    assert stopped.result(30).state == "stopped"
    Operation.objects.update(next_at=operation.created_at)
    assert operations.run_chunk() is None
    operation.refresh_from_db()
    assert (operation.changed, Outcome.objects.count()) == (2, 2)


def test_what_another_is_at_is_left_and_the_next_one_taken() -> None:
    _, first = operation_on(4, chunk=2)
    with transaction.atomic():
        assert operations.run_chunk() == 2
        assert beside(lambda: operations.run_chunk()).result(30) is None

    first.refresh_from_db()
    assert first.changed == 2


def test_a_job_that_is_claimed_meanwhile_is_asked_to_stop(connection: Connection) -> None:

    boss = user_with("cancel_job", "bulk_job")
    job = Job.objects.schedule("test.noop", group="g")
    operation = operations.submit(boss, "cancel", "group:g due:-1d..+1d", "why")
    claim(connection, job, process(connection))
    operations.run_chunk()
    operation.refresh_from_db()
    assert (operation.changed, operation.requested) == (0, 1)
