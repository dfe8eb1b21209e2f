"""When the supervisor kills the process of a body that is late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from dispatch.bodies import Bodies
from dispatch.holdings import Holdings
from dispatch.slots import Slots
from jobs.clock import DatabaseClock
from jobs.conf import conf
from jobs.registry import registry
from jobs.results import Claim, Held


@pytest.mark.parametrize(("job_type", "graces"), [("test.noop", 1), ("test.async", 2)])
def test_le_03_an_async_body_has_the_grace_period_to_end_after_its_hard_timeout(
    job_type: str, graces: int
) -> None:
    """One that blocks its loop cannot be cancelled, and holds up all others of it."""
    known = registry.get(job_type)
    assert known is not None
    held = Held(uuid4(), uuid4(), 1, job_type, 1, 20, 0)
    claim = Claim(held, 1, "acme", job_type, 0, datetime(2026, 12, 1, tzinfo=UTC), None, False, "{}")
    slots = Slots.create(1, 30.0)
    holdings = Holdings(slots)
    bodies = Bodies(1, holdings, DatabaseClock(), "default", lambda settlement: None, lambda: None)
    bodies._set_deadlines(holdings.add(claim), known, 100.0)
    (started,) = slots.started()
    after = (known.timeout or timedelta()) + graces * conf().grace
    assert started.deadline == 100.0 + after.total_seconds()
