"""A relay: what it settles, whom it starts in the same place, and when it leaves that to a claim."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from jobs.leases import counts, may_end_in_relay, may_relay, relay, settle
from jobs.models import Job, Outcome, QueueEntry, UniqueKey
from jobs.results import Completed, Settlement
from tests.factories import come_due, failed, schedule
from tests.schema.guards_relay import ended, limited, relayed, running

Connection = psycopg.Connection[Any]


@pytest.mark.parametrize("number", [1, 2])
def test_who_has_ended_is_settled_and_the_next_in_line_runs_in_his_place(
    here: Connection, number: int
) -> None:
    claimer, held = limited(here)
    waiting = list(
        QueueEntry.objects.filter(lease_token=None)
        .order_by("run_at", "job_id")
        .values_list("job_id", flat=True)
    )
    found = relayed(here, claimer, held[:number])
    assert set(found.settled.fates) == {each.held.job_id for each in held[:number]}
    assert [each.held.job_id for each in found.claims] == waiting[:number]
    assert running() == 2
    assert set(Outcome.objects.values_list("job_id", "state", "attempt")) == {
        (each.held.job_id, "completed", 1) for each in held[:number]
    }


def test_its_claim_is_as_any_other(here: Connection) -> None:
    claimer, held = limited(here, 1, payload={"n": 1}, priority=7, group="g")
    (one,) = relayed(here, claimer, held).claims
    entry = QueueEntry.objects.get(job_id=one.held.job_id)
    assert (entry.lease_token, entry.process_id, entry.attempt) == (
        one.held.lease_token,
        claimer.process_id,
        1,
    )
    assert one._replace(held=held[0].held, run_at=held[0].run_at) == held[0]
    assert one.held._replace(job_id=held[0].held.job_id, lease_token=held[0].held.lease_token) == held[0].held
    settle(here, ended(here, [one]))
    assert Outcome.objects.count() == 2


def test_relays_go_on_until_nothing_is_left(here: Connection) -> None:
    claimer, held = limited(here, 1, 4)
    for left in (2, 1, 0):
        found = relayed(here, claimer, held)
        held = found.claims
        assert QueueEntry.objects.filter(lease_token=None).count() == left
    assert relayed(here, claimer, held).claims == []
    assert Outcome.objects.count() == 4
    assert not QueueEntry.objects.exists()


def test_entries_of_others_are_not_started(here: Connection) -> None:
    claimer, held = limited(here, 2, 2)
    schedule(queue="q", tenant="other")
    come_due(here)
    assert relayed(here, claimer, held[:1]).claims == []


def test_a_key_until_done_is_free_again(here: Connection) -> None:
    schedule(queue="q", tenant="acme", unique_key="k")
    claimer, held = limited(here, 1, 3)
    assert UniqueKey.objects.exists()
    relayed(here, claimer, held)
    assert not UniqueKey.objects.exists()


def test_what_is_left_to_the_settler(here: Connection) -> None:
    _, held = limited(here)
    key = held[0].held._replace(key=(1, "k"))
    assert may_end_in_relay(Settlement(held[0].held, Completed(), None))
    for other in (
        Settlement(held[0].held, failed(), None),
        Settlement(held[0].held, Completed('"a result"'), None),
        Settlement(held[0].held, Completed(None, "a note"), None),
        Settlement(key, Completed(), None),
    ):
        assert not may_end_in_relay(other)


def test_not_while_somebody_waits_for_the_thread(here: Connection) -> None:
    claimer, held = limited(here)
    schedule(queue="q", tenant="other")
    come_due(here)
    claimer.looks.look(here)
    assert not may_relay(claimer, held[0].tenant_id, ended(here, held))
    assert len(claimer.claim(here, 9, 9)) == 1
    assert may_relay(claimer, held[0].tenant_id, ended(here, held))
    claimer.passed.tie(4711)
    assert not may_relay(claimer, held[0].tenant_id, ended(here, held))


def test_not_where_unknown_types_lie_among_what_is_due(here: Connection) -> None:
    """It would walk them all for the next that it knows."""
    claimer, held = limited(here)
    claimer.line.strangers = True
    assert not may_relay(claimer, held[0].tenant_id, ended(here, held))


def test_not_for_a_tenant_that_is_not_at_its_limit(here: Connection) -> None:
    claimer, held = limited(here)
    claimer.passed.settled(held[0].tenant_id)
    claimer.passed.bring_back(lambda tenants: [])
    assert not may_relay(claimer, held[0].tenant_id, ended(here, held))


def test_not_for_a_job_of_another_day(here: Connection) -> None:
    claimer, held = limited(here)
    other = Job.objects.schedule("test.noop", delay=timedelta(days=1))
    (one,) = ended(here, held[:1])
    assert not may_relay(claimer, held[0].tenant_id, [one._replace(held=one.held._replace(job_id=other.pk))])


def test_now_and_then_a_claim_says_from_where_on_to_count(
    here: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "RELAYS", 2)
    claimer, held = limited(here, 1)
    for _ in range(2):
        held = relayed(here, claimer, held).claims
    assert not may_relay(claimer, held[0].tenant_id, ended(here, held))
    settle(here, ended(here, held))
    claimer.settled(held[0].tenant_id)
    held = [each for _ in range(3) for each in claimer.claim(here, 9, 9)]
    assert may_relay(claimer, held[0].tenant_id, ended(here, held))
    monkeypatch.setattr(counts, "RELAYED_SECONDS", -1.0)
    assert not may_relay(claimer, held[0].tenant_id, ended(here, held))


def test_the_highest_priority_starts_first(here: Connection) -> None:
    for priority in (0, 5):
        schedule(queue="q", tenant="acme", priority=priority)
    claimer, held = limited(here, 1, 2, priority=9)
    order = []
    while held:
        order.append(held[0].priority)
        held = relayed(here, claimer, held).claims
    assert order == [9, 9, 5, 0]


def test_who_was_settled_by_a_relay_whose_reply_was_lost_is_not_fenced(here: Connection) -> None:
    """The settler is given it then, and finds it written."""
    claimer, held = limited(here)
    done = ended(here, held[:1])
    assert relay(here, claimer, held[0].tenant_id, done)
    again = settle(here, done)
    assert (again.fates, again.fenced) == ({}, set())
    assert Outcome.objects.count() == 1
    assert running() == 2


def test_midnight_between_the_question_and_the_relay_does_no_harm(
    here: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimer, held = limited(here)
    done = ended(here, held[:1])
    assert may_relay(claimer, held[0].tenant_id, done)
    tomorrow = claimer.looks.clock.now() + timedelta(days=1)
    monkeypatch.setattr(claimer.looks.clock, "now", lambda: tomorrow)
    found = relay(here, claimer, held[0].tenant_id, done)
    assert found
    assert (len(found.settled.fates), len(found.claims)) == (1, 1)
