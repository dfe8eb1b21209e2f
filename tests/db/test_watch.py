"""What a worker holds, compared with what the database says of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import psycopg
import pytest

from dispatch import watch as module
from dispatch.holdings import Holding, Holdings, Stop
from dispatch.slots import Slots
from dispatch.watch import FULL_CHECK, Watch
from jobs.leases import settle
from jobs.models import QueueEntry
from jobs.results import Cancelled, Claim, Released, Settlement
from tests.factories import claim, process, schedule
from tests.statements import Noting

Connection = psycopg.Connection[Any]


class Watched:
    """A process, what it holds, and what its watch has settled."""

    def __init__(self, here: Connection) -> None:
        self.here, self.process_id = here, process(here)
        self.slots = Slots.create(8, 30.0)
        self.holdings = Holdings(self.slots)
        self.settled: list[Settlement] = []
        self.watch = Watch(self.process_id, self.holdings, self.settled.append)

    def claim(self, **options: Any) -> Claim:
        """A claim whose reply was lost, unless it is held."""
        return claim(self.here, schedule(**options), self.process_id)

    def hold(self, held: Claim | None = None, *, started: bool = True) -> Holding:
        holding = self.holdings.add(held or self.claim())
        if started:
            assert self.holdings.leave_buffer(holding)
        return holding

    def reconcile(self) -> list[str]:
        """Returns what was asked for."""
        noting = Noting(self.here)
        self.watch.reconcile(cast(Connection, noting))
        names = {module._KNOWN: "known", module._MINE: "all"}
        return [names[statement] for statement in noting.sent]


@pytest.fixture
def watched(here: Connection) -> Iterator[Watched]:
    watched = Watched(here)
    yield watched
    watched.slots.close()


def test_what_is_ours_is_left_alone(watched: Watched) -> None:
    holding, waiting = watched.hold(), watched.hold(started=False)
    watched.reconcile()
    assert (holding.reason, waiting.reason, watched.settled) == (None, None, [])


def test_what_is_no_longer_there_is_lost(watched: Watched) -> None:
    holding, other = watched.hold(), watched.hold()
    QueueEntry.objects.filter(job_id=holding.claim.held.job_id).delete()
    watched.reconcile()
    assert (holding.reason, other.reason) == (Stop.LOST, None)
    assert holding.context.cancelled
    assert watched.settled == []


def test_what_another_process_has_claimed_is_lost(watched: Watched, here: Connection) -> None:
    holding = watched.hold()
    QueueEntry.objects.update(lease_token=None, process_id=None)
    claim(here, schedule(), process(here))
    watched.reconcile()
    assert holding.reason is Stop.LOST


def test_what_we_have_claimed_again_ourselves_is_lost_under_its_old_lease_alone(watched: Watched) -> None:
    """A server that crashed has lost the first claim, which it had committed asynchronously."""
    old = watched.hold()
    QueueEntry.objects.update(lease_token=None, process_id=None, attempt=0)
    (entry,) = QueueEntry.objects.all()
    new = watched.hold(claim(watched.here, entry.job, watched.process_id))
    watched.reconcile()
    assert (old.reason, new.reason) == (Stop.LOST, None)


def test_what_was_settled_meanwhile_is_not_lost(watched: Watched, here: Connection) -> None:
    """Its result was written, and the settler's thread is about to say so."""
    holding = watched.hold()

    class Meanwhile(Noting):
        def execute(self, *args: Any, **options: Any) -> Any:
            if watched.holdings.of(holding.claim.held):
                settle(here, [Settlement(holding.claim.held, Cancelled(), None)])
                watched.holdings.forget(holding)
            return super().execute(*args, **options)

    watched.watch.reconcile(cast(Connection, Meanwhile(here)))
    assert not QueueEntry.objects.exists()
    assert holding.reason is None


def test_a_body_is_told_of_a_cancel_and_what_has_not_started_ends_at_once(watched: Watched) -> None:
    running, waiting = watched.hold(), watched.hold(started=False)
    QueueEntry.objects.update(cancel_requested=True)
    watched.reconcile()
    assert (running.reason, waiting.reason) == (Stop.CANCEL, Stop.CANCEL)
    assert watched.settled == [Settlement(waiting.claim.held, Cancelled(), None)]


def test_a_claim_whose_reply_was_lost_is_given_back_after_two_looks(watched: Watched) -> None:
    lost = watched.claim()
    assert watched.reconcile() == ["all"]
    assert (watched.settled, watched.watch.uncertain) == ([], True)
    assert watched.reconcile() == ["all"]
    assert watched.settled == [Settlement(lost.held, Released(), None)]
    assert not watched.watch.uncertain


def test_a_claim_that_was_on_its_way_is_not_given_back(watched: Watched) -> None:
    on_its_way = watched.claim()
    watched.reconcile()
    watched.hold(on_its_way)
    assert watched.reconcile() == ["known", "all"]
    assert (watched.settled, watched.watch.uncertain) == ([], False)


def test_claims_that_nobody_knows_are_looked_for_seldom_and_when_a_reply_was_lost(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(module, "boottime", lambda: now)
    assert watched.reconcile() == ["all"]
    watched.hold()
    lost = watched.claim()
    assert watched.reconcile() == ["known"]
    watched.watch.doubt()
    assert watched.reconcile() == ["known", "all"]
    assert watched.reconcile() == ["known", "all"]
    assert [each.held for each in watched.settled] == [lost.held]
    assert watched.reconcile() == ["known"]
    now += FULL_CHECK
    assert watched.reconcile() == ["known", "all"]


def test_the_claims_of_other_processes_are_none_of_ours(watched: Watched, here: Connection) -> None:
    claim(here, schedule(), process(here))
    watched.reconcile()
    watched.reconcile()
    assert watched.settled == []
