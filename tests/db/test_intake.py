"""How long a worker may sleep, and what wakes it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from pytest_django import Settings

from dispatch.intake import Intake
from dispatch.reserve import FIRST
from dispatch.starts import AHEAD
from jobs.clock import DatabaseClock
from jobs.leases.looks import COMING
from jobs.models import Queue, Tenant
from jobs.registry import registry
from tests.factories import come_due, process, schedule

Connection = psycopg.Connection[Any]


def intake(here: Connection, *queues: str) -> Intake:
    clock = DatabaseClock()
    clock.read(here)
    return Intake(queues or ["q"], process(here), registry.names(), clock, suspects=False)


def turn(mine: Intake, here: Connection, size: int = 5) -> int:
    """What one turn of a worker claims."""
    return sum(len(mine.claim(here, queue, size, size)[0]) for queue in mine.ready(here))


def turn_of(mine: Intake, here: Connection, queue: str) -> int:
    return len(mine.claim(here, queue, 5, 5)[0])


@pytest.fixture(autouse=True)
def _patience(settings: Settings) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "idle_poll": 600, "look_ahead": 1200}


def sleeps_until(mine: Intake, here: Connection) -> tuple[datetime, datetime]:
    """It would sleep until a moment between these two."""
    before = mine.clock.now()
    seconds = timedelta(seconds=mine.idle_for(here))
    return before + seconds, mine.clock.now() + seconds


def wakes_for(mine: Intake, here: Connection, moment: datetime) -> bool:
    first, last = sleeps_until(mine, here)
    return first <= moment <= last


@pytest.mark.parametrize("kind", ["queue", "tenant"])
@pytest.mark.parametrize("most", [0, 1])
def test_a_worker_that_waits_for_a_limit_does_not_turn_in_vain(
    here: Connection, kind: str, most: int
) -> None:
    for _ in range(3):
        schedule(queue="q")
    come_due(here)
    if kind == "queue":
        Queue.objects.create(name="q", max_running=most)
    else:
        Tenant.objects.update(max_running=most)
    mine = intake(here)
    assert turn(mine, here) == most
    assert turn(mine, here) == 0
    assert 0.005 <= mine.idle_for(here) <= 0.02


def test_with_nothing_to_do_a_worker_sleeps_until_the_next_poll(here: Connection) -> None:
    mine = intake(here)
    mine.ready(here)
    assert mine.idle_for(here) == 600


def test_a_worker_wakes_a_moment_before_what_is_coming(here: Connection) -> None:
    later, sooner = (schedule(queue="q", delay=timedelta(seconds=n)) for n in (300, 200))
    mine = intake(here)
    mine.ready(here)
    assert wakes_for(mine, here, sooner.due_at - AHEAD)
    sooner.cancel()
    mine.forget()
    mine.ready(here)
    assert wakes_for(mine, here, later.due_at - AHEAD)


def test_a_worker_wakes_for_what_must_start_at_once_at_its_time(here: Connection) -> None:
    job = schedule(queue="q", delay=timedelta(seconds=200), max_attempts=1)
    mine = intake(here)
    mine.ready(here)
    assert wakes_for(mine, here, job.due_at)


def test_the_first_of_all_queues_wakes_a_worker(here: Connection) -> None:
    schedule(queue="r", delay=timedelta(seconds=300))
    job = schedule(queue="q", delay=timedelta(seconds=200))
    mine = intake(here, "r", "q")
    mine.ready(here)
    assert wakes_for(mine, here, job.due_at - AHEAD)


def test_who_keeps_coming_too_late_wakes_a_moment_after(here: Connection) -> None:
    job = schedule(queue="q", delay=timedelta(seconds=200))
    mine = intake(here)
    mine.ready(here)
    mine._woke_for.add("q")
    assert turn_of(mine, here, "q") == 0
    assert wakes_for(mine, here, job.due_at + timedelta(seconds=FIRST))
    schedule(queue="q")
    come_due(here)
    mine.forget()
    assert turn(mine, here) == 1
    mine._looks._wide_at = 0.0  # after a narrow look nobody sleeps for long
    mine.forget()
    assert wakes_for(mine, here, job.due_at - AHEAD), "it was needed"


def test_a_crowd_wakes_even_those_who_stand_back(here: Connection) -> None:
    due_at = DatabaseClock().read(here) + timedelta(seconds=200)
    for _ in range(COMING):
        job = schedule(queue="q", due_at=due_at)
    mine = intake(here)
    mine._reserve.lost()
    mine.ready(here)
    assert wakes_for(mine, here, job.due_at - AHEAD)


def test_who_has_something_to_claim_does_not_sleep(here: Connection) -> None:
    schedule(queue="q")
    come_due(here)
    mine = intake(here)
    mine.ready(here)
    assert mine.idle_for(here) == 0.0
    assert turn(mine, here) == 1
    assert mine.idle_for(here) == 600
