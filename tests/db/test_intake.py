"""How long a worker may sleep, and what wakes it."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from dispatch.intake import Intake
from jobs.clock import DatabaseClock
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
