"""How much of a worker one tenant may hold while others wait."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings

from dispatch import noise
from dispatch.holdings import Holding, Holdings
from dispatch.noise import RECENT, Noise
from dispatch.pace import Pace
from dispatch.slots import Slots
from jobs.results import Claim, Held

THREADS = 8
LOUD, QUIET = 1, 2
_numbers = count(1)


class Worker:
    """A worker's noise, at a time that the test says, with what it holds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(noise, "boottime", lambda: self.now)
        self.pace = Pace()
        self.holdings = Holdings(Slots.create(THREADS, 30.0))
        self.noise = Noise(THREADS, self.holdings, self.pace)
        self.held: dict[int, list[Holding]] = {LOUD: [], QUIET: []}

    def takes(self, tenant_id: int, number: int = 1) -> list[bool]:
        """Claims that many; of each whether it goes behind the others'."""
        self.noise.begin()
        behind = []
        for _ in range(number):
            claim = _claim(tenant_id)
            behind.append(self.noise.served(claim))
            self.held[tenant_id].append(self.holdings.add(claim, loud=behind[-1]))
        return behind

    def ends(self, tenant_id: int, number: int = 1) -> None:
        for _ in range(number):
            self.holdings.forget(self.held[tenant_id].pop())

    def bodies_take(self, tenant_id: int, seconds: float) -> None:
        for _ in range(60):
            self.pace.note("q", "t", tenant_id, seconds)

    def room(self, tenant_id: int, share: float | None = None, *, rivals: bool = True) -> int | None:
        self.noise.begin()
        return self.noise.room(tenant_id, share, rivals=rivals)


def _claim(tenant_id: int) -> Claim:
    number = next(_numbers)
    held = Held(UUID(int=number << 80), UUID(int=number), 1, "t", 1, 5, 0)
    values: dict[str, Any] = dict.fromkeys(Claim._fields)
    return Claim(
        **{
            **values,
            "held": held,
            "tenant_id": tenant_id,
            "tenant": "t",
            "queue": "q",
            "run_at": datetime.now(UTC),
        }
    )


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    return Worker(monkeypatch)


def test_alone_a_tenant_may_have_everything(worker: Worker) -> None:
    worker.takes(LOUD, 20)
    assert worker.room(LOUD, rivals=False) is None


def test_while_others_wait_slow_jobs_hold_their_share_of_the_threads(worker: Worker) -> None:
    worker.bodies_take(LOUD, 2.0)
    assert worker.room(LOUD) == 5
    worker.takes(LOUD, 3)
    assert worker.room(LOUD) == 2
    worker.takes(LOUD, 2)
    assert worker.room(LOUD) == 0
    worker.ends(LOUD)
    assert worker.room(LOUD) == 1


def test_what_it_held_before_the_others_came_counts(worker: Worker) -> None:
    worker.takes(LOUD, 8)
    assert worker.room(LOUD) == 0
    worker.ends(LOUD, 3)
    assert worker.room(LOUD) == 0
    worker.ends(LOUD)
    assert worker.room(LOUD) == 1


def test_others_count_for_a_while_after_they_were_served(worker: Worker) -> None:
    worker.takes(QUIET)
    worker.takes(LOUD, 8)
    worker.now += RECENT - 0.1
    worker.takes(LOUD, 1)
    assert worker.room(LOUD, rivals=False) == 0
    worker.now += 0.2
    assert worker.room(LOUD, rivals=False) is None


def test_being_served_oneself_is_not_another(worker: Worker) -> None:
    for _ in range(3):
        worker.takes(LOUD)
    assert worker.room(LOUD, rivals=False) is None
    assert worker.room(QUIET, rivals=False) is not None


def test_of_quick_jobs_what_a_moment_takes_may_wait_as_well(worker: Worker) -> None:
    worker.bodies_take(LOUD, 0.06)
    assert worker.room(LOUD) == 5
    worker.bodies_take(LOUD, 0.025)
    most = worker.room(LOUD)
    assert most is not None
    assert 50 <= most <= 56
    worker.takes(LOUD, 20)
    assert worker.room(LOUD) == most - 20
    worker.takes(LOUD, 20)
    assert worker.room(LOUD) == 0, "it is filled up when half is gone: claims of few cost more"
    worker.ends(LOUD, 20)
    assert worker.room(LOUD) == most - 20


@pytest.mark.parametrize(("share", "room"), [(None, 5), (0.3, 2), (0.01, 1), (1.0, None)])
def test_a_queue_may_have_a_share_of_its_own(worker: Worker, share: float | None, room: int | None) -> None:
    worker.bodies_take(LOUD, 2.0)
    assert worker.room(LOUD, share) == room


def test_the_settings_say_the_share_of_the_others(worker: Worker, settings: Settings) -> None:
    worker.bodies_take(LOUD, 2.0)
    settings.SCHEDULER = {**settings.SCHEDULER, "noisy_share": 0.5}
    assert worker.room(LOUD) == 4


def test_what_is_over_the_share_runs_after_the_others(worker: Worker) -> None:
    assert worker.takes(LOUD, 7) == [False] * 5 + [True] * 2
    assert worker.takes(QUIET, 2) == [False] * 2


def test_among_many_of_a_kind_nobody_runs_after_the_others(worker: Worker) -> None:
    for _ in range(3):
        for tenant in range(3, 6):
            worker.held.setdefault(tenant, [])
            assert worker.takes(tenant, 4) == [False] * 4
    assert len(worker.holdings) == 36


def test_few_tenants_are_remembered(worker: Worker) -> None:
    for tenant in range(3, 50):
        worker.held[tenant] = []
        worker.takes(tenant)
    assert len(worker.noise._last) == 2


def test_a_pace_of_too_many_tenants_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dispatch.pace.MOST_TENANTS", 10)
    pace = Pace()
    for tenant in range(25):
        pace.note("q", "t", tenant, 0.001)
    assert len(pace._tenants) <= 10
