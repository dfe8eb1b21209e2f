"""What becomes of an entry that is changed while a claim is on its way: after its snapshot, before its lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from datetime import date, timedelta
from uuid import UUID

import pytest

from jobs import clock
from jobs.leases import Claimer, claim, looks
from jobs.models import Job, QueueEntry
from jobs.registry import registry
from jobs.sql import for_day
from jobs.states import JobState
from tests.factories import own_connection, process
from tests.racing import Connection, assert_sound, beside_on_own, due_job, wait_for_waiter

pytestmark = pytest.mark.concurrency
GATE = 4711


def gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim waits at the gate once it has its snapshot, before it looks at entries. After the first one no look is
    due, so that later claims go by marks."""
    waiting = f"    FROM (SELECT pg_advisory_xact_lock_shared({GATE})) waited, unnest("

    def gated(name: str, day: date, plain: bool) -> str:
        text = str(for_day(name, day, plain))
        assert name == "claim"
        assert text.count("    FROM unnest(\n        %(tenants)s") == 1
        return text.replace("    FROM unnest(\n        %(tenants)s", f"{waiting}\n        %(tenants)s")

    monkeypatch.setattr(claim, "for_day", gated)
    monkeypatch.setattr(looks, "EVERY", 1e6)


@pytest.fixture(autouse=True)
def _gate(monkeypatch: pytest.MonkeyPatch) -> None:
    gate(monkeypatch)


def while_it_claims(claimer: Claimer, act: Callable[[], object]) -> list[UUID]:
    """Do this between a claim's snapshot and its locks; returns what it took."""
    with own_connection() as gate:
        gate.execute("SELECT pg_advisory_lock(%s)", [GATE])
        claimed: Future[list[UUID]] = beside_on_own(
            lambda own: [each.held.job_id for each in claimer.claim(own, 9, 9)]
        )
        wait_for_waiter(gate)
        act()
        gate.execute("SELECT pg_advisory_unlock(%s)", [GATE])
        return claimed.result(30)


@pytest.fixture
def claimer(connection: Connection) -> Claimer:
    return Claimer("test.noop", process(connection), registry.names())


def touch(job: Job) -> None:
    assert QueueEntry.objects.filter(job_id=job.id).update(group="changed") == 1


def test_one_that_was_only_touched_is_taken_by_the_same_call(claimer: Claimer) -> None:
    """A worker that got nothing would sleep, though the entry is due."""
    job = due_job()
    assert while_it_claims(claimer, lambda: touch(job)) == [job.id]
    assert QueueEntry.objects.get().group == "changed"
    assert_sound()


def test_one_that_was_touched_among_others_is_taken_by_the_next(
    claimer: Claimer, connection: Connection
) -> None:
    jobs = [due_job() for _ in range(3)]
    assert while_it_claims(claimer, lambda: touch(jobs[1])) == [jobs[0].id, jobs[2].id]
    assert [each.held.job_id for each in claimer.claim(connection, 9, 9)] == [jobs[1].id]
    assert_sound()


def test_one_that_was_cancelled_is_left_alone(claimer: Claimer) -> None:
    jobs = [due_job() for _ in range(2)]
    assert while_it_claims(claimer, jobs[0].cancel) == [jobs[1].id]
    assert jobs[0].state == JobState.CANCELLED
    assert_sound()


def test_one_that_was_put_off_is_left_until_then(claimer: Claimer, connection: Connection) -> None:
    jobs = [due_job() for _ in range(2)]
    later = clock.now() + timedelta(hours=1)
    assert while_it_claims(claimer, lambda: jobs[0].reschedule(later)) == [jobs[1].id]
    assert claimer.claim(connection, 9, 9) == []
    assert jobs[0].state == JobState.SCHEDULED
    assert_sound()


def test_one_that_another_has_claimed_is_left_to_it(claimer: Claimer) -> None:
    jobs = [due_job() for _ in range(2)]

    def take_the_first() -> None:
        QueueEntry.objects.filter(job_id=jobs[0].id).update(lease_token=jobs[0].id, process_id=0)

    assert while_it_claims(claimer, take_the_first) == [jobs[1].id]
    assert QueueEntry.objects.get(job_id=jobs[0].id).process_id == 0
