"""What a claim picked and did not take: its mark waits for it."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

import psycopg
import pytest

from jobs.leases import Claimer, looks
from jobs.models import Job, QueueEntry, Tenant
from jobs.registry import registry
from tests.db.test_claim import ready
from tests.factories import process, schedule
from tests.statements import Noting

Connection = psycopg.Connection[Any]


@pytest.fixture(autouse=True)
def _no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first one: a claimer goes by its marks alone."""
    monkeypatch.setattr(looks, "EVERY", 1e6)


class Started:
    """A claimer that has looked, and what its later claims sent."""

    def __init__(self, here: Connection) -> None:
        self.claimer = Claimer("test.noop", process(here), registry.names())
        self.claimer.looks.look(here)
        self.noting = Noting(here)

    def claim(self, size: int = 9, free: int = 0) -> list[UUID]:
        self.noting.sent.clear()
        return [each.held.job_id for each in self.claimer.claim(cast(Connection, self.noting), size, free)]


def due(number: int, **options: Any) -> list[Job]:
    jobs = [schedule(**options) for _ in range(number)]
    ready(*jobs)
    return jobs


def ids(*jobs: Job) -> list[UUID]:
    return [job.id for job in jobs]


def change(*jobs: Job, **fields: Any) -> None:
    QueueEntry.objects.filter(job_id__in=ids(*jobs)).update(**fields)


@pytest.mark.parametrize("why", [{"max_attempts": 1}, {"crashes": 1}], ids=["last attempt", "crashed once"])
def test_what_must_start_at_once_waits_for_a_free_thread(here: Connection, why: dict[str, int]) -> None:
    jobs = due(3)
    change(*jobs, **why)
    mine = Started(here)
    assert mine.claim(free=0) == []
    assert mine.claim(free=2) == ids(*jobs[:2])
    assert mine.noting.sent == ["claim"], "from its mark, not from a look"
    assert mine.claim(free=1) == ids(jobs[2])


def test_what_need_not_start_at_once_is_taken_past_what_must(here: Connection) -> None:
    jobs = due(5)
    change(jobs[0], jobs[2], max_attempts=1)
    mine = Started(here)
    assert mine.claim(free=0) == ids(jobs[1], *jobs[3:])
    assert mine.claim(free=1) == ids(jobs[0])
    assert mine.claim(free=1) == ids(jobs[2])


def test_free_threads_are_given_in_the_order_of_the_entries(here: Connection) -> None:
    jobs = due(4)
    change(*jobs[1:], max_attempts=1)
    mine = Started(here)
    assert mine.claim(free=2) == ids(*jobs[:3])
    assert mine.claim(free=2) == ids(jobs[3])


def test_a_tenant_that_could_give_nothing_does_not_hold_up_the_others(here: Connection) -> None:
    """Nor does it fill the batch of each claim."""
    tied = due(3, tenant="tied")
    change(*tied, max_attempts=1)
    others = due(6, tenant="other")
    mine = Started(here)
    mine.claimer.ring._cursor = 0
    assert mine.claim(size=4) == ids(*others[:2])
    assert mine.claim(size=4) == ids(*others[2:])
    assert mine.claimer.waiting
    assert mine.claim(size=4, free=4) == ids(*tied[:2])
    assert mine.claim(size=4, free=4) == ids(tied[2])


def test_a_lower_priority_goes_before_a_higher_one_that_must_wait_for_a_thread(here: Connection) -> None:
    high, low = due(1, priority=5), due(1)
    change(*high, max_attempts=1)
    mine = Started(here)
    assert mine.claim(free=0) == ids(*low)
    assert mine.claim(free=1) == ids(*high)


def test_under_a_limit_no_more_are_locked_than_there_are_threads(here: Connection) -> None:
    jobs = due(4)
    Tenant.objects.update(max_running=3)
    mine = Started(here)
    assert mine.claim(free=0) == []
    assert mine.claim(free=2) == ids(*jobs[:2])
    assert mine.claim(free=2) == ids(jobs[2])
    assert mine.claim(free=2) == []
