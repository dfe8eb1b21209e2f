"""Claims a moment before an entry's time: its worker holds it back until then."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from jobs.leases import Claimer, looks
from jobs.models import Job, Queue, QueueEntry, Tenant
from jobs.registry import registry
from jobs.results import Claim
from tests.db.test_claim import ids
from tests.factories import come_due, process, schedule, server_time

Connection = psycopg.Connection[Any]
SOON, AHEAD = timedelta(seconds=4), timedelta(seconds=10)


def claimer(here: Connection, ahead: timedelta = AHEAD) -> Claimer:
    """One that knows what is coming."""
    mine = Claimer("test.noop", process(here), registry.names(), ahead=ahead)
    mine.looks.look(here)
    mine.line.arrive(server_time(here))
    return mine


def soon(later: timedelta = timedelta()) -> Job:
    return schedule(delay=SOON + later)


def due(here: Connection) -> Job:
    job = schedule()
    come_due(here)
    return job


def claimed(here: Connection, mine: Claimer) -> list[Claim]:
    return mine.claim(here, 9, 9)


def test_an_entry_is_claimed_ahead_and_says_when_it_may_start(here: Connection) -> None:
    job = soon()
    (taken,) = claimed(here, claimer(here))
    assert (taken.held.job_id, taken.run_at) == (job.id, job.due_at)
    assert taken.run_at > server_time(here)


def test_one_that_is_due_says_so_too(here: Connection) -> None:
    job = due(here)
    (taken,) = claimed(here, claimer(here))
    assert taken.run_at == QueueEntry.objects.get(job_id=job.id).run_at < server_time(here)


def test_with_others_an_entry_is_claimed_somewhat_earlier(here: Connection) -> None:
    """So that a steady flow is claimed in batches."""
    soon()
    mine = claimer(here, ahead=SOON * 2 / 3)
    assert claimed(here, mine) == []
    due(here)
    mine.looks.forget()
    assert len(claimed(here, mine)) == 2


def test_nothing_is_claimed_earlier_than_that(here: Connection) -> None:
    """Nor with others that are due."""
    soon()
    for ahead in (SOON / 10, timedelta()):
        first = due(here)
        assert ids(claimed(here, claimer(here, ahead))) == [first.id]


@pytest.mark.parametrize("why", ["last attempt", "crashed once", "tenant limited", "queue limited"])
def test_what_must_start_at_once_is_claimed_at_its_time_alone(here: Connection, why: str) -> None:
    soon()
    if why == "last attempt":
        QueueEntry.objects.update(max_attempts=1)
    elif why == "crashed once":
        QueueEntry.objects.update(crashes=1)
    elif why == "tenant limited":
        Tenant.objects.update(max_running=5)
    else:
        Queue.objects.create(name="test.noop", max_running=5)
    mine = claimer(here)
    mine.line.arrive(server_time(here) + SOON)  # though it takes its turn
    assert claimed(here, mine) == []


def test_a_queue_that_became_limited_is_claimed_at_its_time_alone(here: Connection) -> None:
    mine = claimer(here)
    assert mine.line.ahead == AHEAD
    due(here)
    Queue.objects.create(name="test.noop", max_running=5)
    assert len(claimed(here, mine)) == 1
    assert mine.line.ahead == timedelta()
    Queue.objects.all().delete()
    due(here)
    assert len(claimed(here, mine)) == 1
    assert mine.line.ahead == AHEAD


def test_nobody_wakes_for_what_was_claimed_with_what_is_due(here: Connection) -> None:
    due(here)
    soon()
    mine = Claimer("test.noop", process(here), registry.names(), ahead=AHEAD)
    mine.looks.look(here)
    assert mine.line.next_at is not None
    assert len(claimed(here, mine)) == 2
    assert mine.line.next_at is None


def test_what_comes_due_meanwhile_does_not_lie_behind_a_claim_ahead(
    here: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its run time is now: before that of the entry which was claimed ahead."""
    monkeypatch.setattr(looks, "EVERY", 1e6)
    first, second, third = due(here), soon(), soon(timedelta(milliseconds=5))
    mine = claimer(here)
    assert ids(mine.claim(here, 2, 2)) == [first.id, second.id]
    between = schedule()
    QueueEntry.objects.filter(job_id=between.id).update(run_at=server_time(here))
    assert ids(mine.claim(here, 2, 2)) == [between.id, third.id]
