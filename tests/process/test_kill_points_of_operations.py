"""Who works on an operation, or on the rollups, is killed at every step: the next one goes on, nothing is done twice and
nothing is left out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dispatch.rollup import Rollups
from jobs import clock, operations, rollups
from jobs.models import Job, Kind, Operation, OperationChunk, Outcome, Rollup
from jobs.newjob import NewJob
from tests import commands
from tests.db.test_admin_tools import user_with
from tests.dying import Mortals, mortals
from tests.factories import own_connection
from tests.racing import assert_sound
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("transactional_db")]
JOBS, CHUNK = 5, 2
STEPS = {
    "cancel": ("SELECT \"jobs_operation\"", "cancel, place 1", "INSERT INTO \"jobs_operationchunk\"", "UPDATE \"jobs_operation\"", "commit"),
    "move": ("SELECT job_id, queue FROM jobs_timer", "prioritize and move, place 1", "INSERT INTO \"jobs_operationchunk\"", "commit"),
    "undo": ("SELECT \"jobs_operationchunk\"", "retry: ended jobs", "INSERT INTO \"jobs_operationchunk\"", "UPDATE \"jobs_operation\"", "commit"),
}  # fmt: skip


@pytest.fixture
def mortal(transactional_db: None, tmp_path: Path) -> Iterator[Mortals]:
    with mortals(commands.environment(), tmp_path) as started:
        yield started


def chunk() -> None:
    """What the loop does in one pass."""
    operations.run_chunk()


def prepare(verb: str, number: int) -> Operation:
    group, boss = f"g{number}", user_with("cancel_job", "retry_job", "move_job", "bulk_job")
    Job.objects.schedule_many(
        [NewJob(job_type="test.noop", delay=timedelta(hours=1, seconds=n), group=group) for n in range(JOBS)]
    )
    given = {"queue": "other"} if verb == "move" else {}
    line = f"group:{group} due:now..+2h"
    made = operations.submit(boss, "move" if verb == "move" else "cancel", line, "why", arguments=given)
    Operation.objects.filter(pk=made.pk).update(chunk_size=CHUNK, rate=10_000)
    if verb == "undo":
        complete(made)
        made = operations.undo(boss, made.pk, "why not")
    return made


def complete(operation: Operation) -> None:
    """The session of the dead one may hold its row for a moment longer; until then there is nothing to do."""

    def is_over() -> bool:
        operations.run_chunk(operation_id=operation.pk)
        Operation.objects.filter(pk=operation.pk).update(next_at=operation.created_at)
        operation.refresh_from_db()
        return operation.ended_at is not None

    wait_until(is_over)


def assert_once(operation: Operation, verb: str) -> None:
    pieces = OperationChunk.objects.filter(operation=operation)
    changed = [job_id for piece in pieces for job_id in piece.ids]
    assert (operation.state, operation.changed, operation.skipped) == ("done", JOBS, {})
    assert len(changed) == len(set(changed)) == JOBS
    assert [piece.number for piece in pieces] == list(range(1, operation.chunks + 1))
    ended = Outcome.objects.filter(job_id__in=changed).count()
    assert ended == (JOBS if verb == "cancel" else 0)


@pytest.mark.parametrize("verb", STEPS)
def test_bk_01_an_operation_whose_process_is_killed_at_any_step_is_done_once(
    mortal: Mortals, verb: str
) -> None:
    visited = list[str]()
    for number in count():
        operation = prepare(verb, number)
        if (trip := mortal.strike(chunk, number, sent=False)) is None:
            complete(operation)
            break
        visited.append(trip)
        complete(operation)
        assert_once(operation, verb)
        if trip.startswith("commit"):
            operation = prepare(verb, number + 1000)
            assert mortal.strike(chunk, number, sent=True) == trip
            complete(operation)
            assert_once(operation, verb)
    assert_sound()
    points = iter(visited)
    assert all(any(step in point for point in points) for step in STEPS[verb]), visited


def roll(now: Any) -> None:
    with own_connection() as connection:
        Rollups().run_once(connection, now)


def test_rollups_whose_process_is_killed_at_any_step_are_right(mortal: Mortals) -> None:
    start = rollups.floor(clock.now(), 60) - timedelta(minutes=1)
    roll(start)
    jobs = Job.objects.schedule_many([NewJob(job_type="test.noop", tenant=f"t{n % 2}") for n in range(JOBS)])
    Job.objects.filter(pk__in=[job_id for job_id, _ in jobs]).cancel()
    Outcome.objects.update(finished_at=start + timedelta(seconds=30))
    end = start + timedelta(minutes=2)
    visited = list[str]()
    for number in count():
        if (trip := mortal.strike(partial(roll, end), number, sent=False)) is None:
            break
        visited.append(trip)
    roll(end)
    point = rollups.series(Kind.ALL, "", start, start + timedelta(minutes=1)).total
    assert point.cancelled == JOBS
    tenants = rollups.totals(Kind.TENANT, start, start + timedelta(minutes=1))
    assert {name: total.cancelled for name, total in tenants.items()} == {"t0": 3, "t1": 2}
    assert Rollup.objects.filter(kind="all", at=start, step=60).count() == 1
    assert any("count: write the rollups" in trip for trip in visited), visited
