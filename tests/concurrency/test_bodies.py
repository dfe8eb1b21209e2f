"""The threads that run bodies: none begins when the lease of its process has ended by our own watch."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from dispatch.bodies import Bodies
from dispatch.holdings import Holdings
from dispatch.slots import Slots
from jobs.clock import DatabaseClock, boottime
from jobs.results import Completed, Released, Settlement
from tests.factories import claim, process, schedule
from tests.waiting import wait_until

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]
Connection = psycopg.Connection[Any]


@pytest.mark.parametrize(("overdue", "result"), [(-5.0, Completed()), (0.5, Released())])
def test_le_05_who_was_frozen_beyond_its_lease_begins_nothing_that_it_held(
    connection: Connection, overdue: float, result: Completed | Released
) -> None:
    """Its supervisor was frozen with it: nobody has told it that the claim is another's. The lease is the supervisor's, whatever
    the settings say by now."""
    settled = list[Settlement]()
    clock, slots = DatabaseClock(), Slots.create(2, 7.0)
    clock.read(connection)
    slots.renewed(boottime() - slots.lease - overdue)
    holdings = Holdings(slots)
    bodies = Bodies(1, holdings, clock, "default", settled.append, lambda: None)
    bodies.put(holdings.add(claim(connection, schedule(), process(connection))))
    bodies.start()
    wait_until(lambda: settled)
    bodies.finish()
    assert bodies.wait(10)
    assert [each.result for each in settled] == [result]
