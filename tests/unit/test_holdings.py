from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from dispatch.holdings import Holdings, Stop
from dispatch.slots import NEVER, Slots
from jobs.ids import new_id
from jobs.results import Claim, Held

NOW = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.fixture
def holdings() -> Holdings:
    return Holdings(Slots.create(4, 30.0))


def claim_of(job_id: UUID | None = None) -> Claim:
    held = Held(job_id or new_id(NOW), uuid4(), 1, "test.noop", 1, 20, 0)
    return Claim(held, 1, "acme", "test.noop", 0, NOW, None, False, "{}")


def test_only_one_caller_may_start_or_give_back_a_claim(holdings: Holdings) -> None:
    holding = holdings.add(claim_of())
    assert holdings.leave_buffer(holding)
    assert not holdings.leave_buffer(holding)
    assert len(holdings) == 1


def test_an_old_claim_that_is_passed_over_leaves_the_new_one_of_the_same_job_alone(
    holdings: Holdings,
) -> None:
    old = holdings.add(claim_of())
    assert holdings.leave_buffer(old)
    new = holdings.add(claim_of(old.claim.held.job_id))
    assert not holdings.leave_buffer(old)
    assert holdings.leave_buffer(new)
    assert (holdings.of(old.claim.held), holdings.of(new.claim.held)) == (old, new)
    holdings.forget(old)
    assert (holdings.of(old.claim.held), holdings.of(new.claim.held)) == (None, new)


def test_a_claim_is_known_by_the_very_object_that_was_taken_in(holdings: Holdings) -> None:
    """Two claims may be equal: one whose reply was lost is found, released, and claimed anew under another token."""
    holding = holdings.add(claim_of())
    held = holding.claim.held
    assert holdings.of(held._replace()) is None
    assert holdings.of(holding.claim._replace(payload=None).held) is holding


def test_the_first_reason_to_stop_stays_but_a_lost_lease_replaces_it(holdings: Holdings) -> None:
    holding = holdings.add(claim_of())
    holding.stop(Stop.TIMEOUT)
    holding.stop(Stop.CANCEL)
    assert str(holding.reason) == "Stop.TIMEOUT"
    holding.stop(Stop.LOST)
    assert str(holding.reason) == "Stop.LOST"
    assert holding.context.cancelled


def test_a_slot_says_started_then_ended_then_nothing(holdings: Holdings) -> None:
    slots, job_id = holdings.slots, new_id(NOW)
    slot = slots.start(job_id, NEVER, guarded=True)
    assert [(each.job_id, each.guarded) for each in slots.started()] == [(job_id, True)]
    slots.end(slot)
    assert list(slots.started()) == []
    assert list(slots.ended()) == [job_id]
    slots.clear(slot)
    assert list(slots.ended()) == []


def test_a_slot_is_seen_through_another_mapping_of_the_same_memory(holdings: Holdings) -> None:
    supervisor = Slots(holdings.slots.fd, holdings.slots.count)
    job_id = new_id(NOW)
    holdings.slots.start(job_id, 12.5, guarded=False)
    assert [(each.job_id, each.deadline) for each in supervisor.started()] == [(job_id, 12.5)]
    supervisor.renewed(3.0)
    supervisor.stop_claiming()
    assert (holdings.slots.lease_left(13.0), holdings.slots.stopping) == (20.0, True)
