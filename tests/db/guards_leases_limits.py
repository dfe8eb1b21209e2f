"""What each guard of a claimer's limits prevents: a small check that fails without it. See guards_leases_claim."""

from __future__ import annotations

from typing import Any, cast

import psycopg
import pytest

from jobs.leases import reply, settle
from jobs.leases.claim import Claimer
from jobs.leases.door import Door
from jobs.leases.passed import FREE_SECONDS, IN_VAIN, Passed, wait_after
from jobs.models import Queue, Tenant
from jobs.results import Claim, Completed, Settlement
from tests.db import test_claim_fairness as fairness
from tests.db import test_claim_free as free
from tests.db import test_claim_left, test_claim_limits
from tests.db.guards_leases_claim import _sent
from tests.db.test_claim_fairness import backlog, by_tenant, claimer
from tests.mutating import Mutants
from tests.statements import Noting
from tests.unit.looking import TIME

Connection = psycopg.Connection[Any]


def _limit_queue(most: int) -> None:
    Queue.objects.create(name="test.noop", max_running=most)


def _limit_tenants(most: int | None) -> None:
    Tenant.objects.update(max_running=most)


def _end(here: Connection, mine: Claimer, taken: list[Claim]) -> None:
    settle(here, [Settlement(each.held, Completed(), None) for each in taken])
    for each in taken:
        mine.settled(each.tenant_id)


def _informed(here: Connection) -> Claimer:
    """A claimer that has looked."""
    mine = claimer(here)
    mine.looks.look(here)
    return mine


# queues


def a_full_queue_is_asked_once(here: Connection) -> None:
    backlog(here, {"a": 2})
    _limit_queue(0)
    mine = _informed(here)
    assert _sent(here, mine) == ["claim", "pipeline", "lock_queue", "claim"]
    assert _sent(here, mine) == []
    TIME.now += FREE_SECONDS
    assert _sent(here, mine) == ["pipeline", "lock_queue", "claim"]


def a_full_queue_is_asked_more_and_more_seldom(here: Connection) -> None:
    backlog(here, {"a": 3})
    _limit_queue(1)
    mine = _informed(here)
    (taken,) = mine.claim(here, 9, 9)
    waits = []
    for _ in range(IN_VAIN + 6):
        assert mine.claim(here, 9, 9) == []
        waits.append(round((mine.retry_in() or 0) / FREE_SECONDS))
        TIME.now += waits[-1] * FREE_SECONDS + 0.001
    assert waits == [1] * IN_VAIN + [2, 4, 8, 16, 16, 16]
    settle(here, [Settlement(taken.held, Completed(), None)])
    assert len(mine.claim(here, 9, 9)) == 1
    assert mine.claim(here, 9, 9) == []
    assert mine.retry_in() == pytest.approx(FREE_SECONDS)


def a_job_that_ends_while_a_full_queue_is_asked_is_not_overlooked(here: Connection) -> None:
    backlog(here, {"a": 2})
    _limit_queue(1)
    mine = _informed(here)
    (taken,) = mine.claim(here, 9, 9)
    noting = Noting(here, claim=lambda: mine.settled(taken.tenant_id))
    assert mine.claim(cast(Connection, noting), 9, 9) == []
    assert noting.sent.count("claim") == 2


def a_full_queue_is_asked_again_soon(here: Connection) -> None:
    backlog(here, {"a": 2})
    _limit_queue(1)
    mine = _informed(here)
    taken = mine.claim(here, 9, 9)
    assert len(taken) == 1
    assert mine.claim(here, 9, 9) == []
    assert mine.retry_in() == pytest.approx(FREE_SECONDS)
    assert (mine.claimable, mine.waiting) == (False, True)
    _end(here, mine, taken)
    assert len(mine.claim(here, 9, 9)) == 1
    assert (mine.retry_in(), mine.claimable) == (None, True)


def a_queue_that_has_room_is_not_full(here: Connection) -> None:
    backlog(here, {"a": 2})
    _limit_queue(5)
    mine = _informed(here)
    assert len(mine.claim(here, 1, 1)) == 1
    assert mine.retry_in() is None


def what_a_queues_limit_has_cut_off_has_not_run_dry(here: Connection) -> None:
    backlog(here, {"a": 1, "b": 1})
    _limit_queue(1)
    mine = _informed(here)
    taken = mine.claim(here, 2, 2)
    assert len(taken) == 1
    _end(here, mine, taken)
    assert _sent(here, mine) == ["pipeline", "lock_queue", "claim"]
    assert mine.ring.touched


def a_queue_whose_limit_is_gone_is_not_locked(here: Connection) -> None:
    backlog(here, {"a": 9})
    _limit_queue(9)
    mine = _informed(here)
    mine.claim(here, 1, 1)
    Queue.objects.all().delete()
    mine.claim(here, 1, 1)
    assert _sent(here, mine, 1, 1) == ["claim"]


def what_is_held_under_a_queues_limit_says_so(here: Connection) -> None:
    backlog(here, {"a": 1})
    _limit_queue(1)
    assert [each.limited for each in claimer(here).claim(here, 9, 9)] == [True]


# tenants


def a_limit_that_was_just_learnt_costs_no_call(here: Connection) -> None:
    backlog(here, {"a": 3})
    mine = _informed(here)
    _limit_tenants(1)
    assert _sent(here, mine) == ["claim", "pipeline", "lock_tenants", "claim"]


def a_limit_is_counted_from_the_look_at_which_it_was_learnt(here: Connection) -> None:
    tenant = backlog(here, {"a": 9})["a"]
    mine = _informed(here)
    mine.looks.number = 7
    _limit_tenants(9)
    _limit_queue(9)
    mine.claim(here, 1, 1)
    mine.claim(here, 1, 1)
    assert mine.counts.queue
    assert (mine.counts.of[tenant].learnt, mine.counts.queue.learnt) == (7, 7)


def a_limit_that_was_lifted_is_learnt_anew(here: Connection) -> None:
    tenant = backlog(here, {"a": 9})["a"]
    mine = _informed(here)
    for most in (9, None, 9):
        mine.looks.number += 1
        _limit_tenants(most)
        mine.claim(here, 1, 1)
        mine.claim(here, 1, 1)
    assert mine.counts.of[tenant].learnt == mine.looks.number


def a_count_moves_on_with_each_claim(here: Connection) -> None:
    """Once it is trusted."""
    tenant = backlog(here, {"a": 9})["a"]
    _limit_tenants(5)
    _limit_queue(5)
    mine = _informed(here)
    mine.claim(here, 1, 1)
    mine.claim(here, 1, 1)
    mine.looks.proven = 10**6
    mine.claim(here, 1, 1)
    oldest = min(free._numbers())
    assert mine.counts.queue
    assert (mine.counts.of[tenant].oldest, mine.counts.queue.oldest) == (oldest, oldest)


def a_full_tenant_is_passed_over(here: Connection) -> None:
    tenant = backlog(here, {"full": 3, "other": 5})
    Tenant.objects.filter(pk=tenant["full"]).update(max_running=0)
    mine = _informed(here)
    assert by_tenant(mine.claim(here, 4, 4)) == {tenant["other"]: 2}
    assert by_tenant(mine.claim(here, 4, 4)) == {tenant["other"]: 3}


def no_more_are_picked_than_may_start(here: Connection) -> None:
    backlog(here, {"a": 9, "b": 9})
    _limit_tenants(9)
    mine = _informed(here)
    noting = Noting(here)
    mine.claim(cast(Connection, noting), 8, 2)
    assert [share[-1] for share in _shares(noting)] == [2, 2]


def without_limits_a_share_is_not_cut(here: Connection) -> None:
    backlog(here, {"a": 9, "b": 9})
    noting = Noting(here)
    _informed(here).claim(cast(Connection, noting), 8, 2)
    assert [share[-1] for share in _shares(noting)] == [4, 4]


def _shares(noting: Noting) -> list[bytes]:
    """The last byte of each is the share: the elements of an array in binary, behind its head."""
    data = noting.given["claim"]["shares"].data
    return [data[start + 4 : start + 12] for start in range(20, len(data), 12)]


def who_is_under_a_limit_waits_for_a_thread_without_a_question(here: Connection) -> None:
    backlog(here, {"a": 3})
    _limit_tenants(3)
    mine = _informed(here)
    assert _sent(here, mine, 9, 0) == []
    assert mine.waiting
    assert not mine.claimable
    assert mine.retry_in() is None
    assert len(mine.claim(here, 9, 2)) == 2


def a_thread_that_is_missing_holds_back_who_is_under_a_limit_alone(here: Connection) -> None:
    tenant = backlog(here, {"a": 3, "b": 3})
    Tenant.objects.filter(pk=tenant["a"]).update(max_running=3)
    assert by_tenant(_informed(here).claim(here, 9, 0)) == {tenant["b"]: 3}


def a_claim_is_one_round_trip(here: Connection) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fairness.test_a_claim_is_one_statement_and_two_or_three_in_one_round_trip_with_limits(here, patch)


IN_LIMITED = "if share.tenant_id in self.ring.limited"

MUTANTS: Mutants = {
    a_full_queue_is_asked_once: [
        (Claimer.claim, "if self.door.shut_for is not None:", "if False:"),
        (Claimer._learn_queue, "elif known:", "elif False:"),
        (
            Claimer._learn_queue,
            "self.counts.queue, known = Count(self.looks.number), False",
            "self.counts.queue = Count(self.looks.number)",
        ),
        (Claimer._send, "if limited:", "if locks:"),
    ],
    a_full_queue_is_asked_again_soon: [
        (Door.shut_for.fget, " else self._full_until", " else OPEN"),  # type: ignore[attr-defined]
        (Claimer.settled, "self.door.settled()", "pass"),
        (Door.settled, "self._full_until = OPEN", "pass"),
    ],
    a_full_queue_is_asked_more_and_more_seldom: [
        (wait_after, "min(SELDOM, 1 << max", "max(0, 1 << max"),
        (Door.full, "self._vain += 1", "pass"),
        (Door.open, "self._vain = 0", "pass"),
        (Door.full, "wait_after(self._vain)", "FREE_SECONDS"),
    ],
    a_job_that_ends_while_a_full_queue_is_asked_is_not_overlooked: [
        (Door.settled, "self._ended += 1", "pass"),
        (Door.full, "if self._ended != self._asked:", "if False:"),
    ],
    a_queue_that_has_room_is_not_full: [(Claimer._learn_queue, "elif room.size > 0:", "elif False:")],
    what_a_queues_limit_has_cut_off_has_not_run_dry: [
        (Claimer._learn_all, "cut=room.size < size", "cut=False"),
        (Claimer._learn, "share.pairs if not cut else []", "share.pairs"),
    ],
    a_queue_whose_limit_is_gone_is_not_locked: [(Claimer._learn_queue, "self.counts.queue = None", "pass")],
    what_is_held_under_a_queues_limit_says_so: [(reply.read, " or under_limit", "")],
    free.test_an_own_settle_of_one_that_is_not_full_is_not_noted: [
        (Passed.settled, "if tenant_id in self.full or tenant_id in self.noisy:", "if True:")
    ],
    a_limit_that_was_just_learnt_costs_no_call: [
        (Claimer._learn, "if tenant_id in asked:", "if True:"),
        (Claimer._learn, "self.ring.learn(tenant_id, weight or 1, limited)", "pass"),
        (Claimer._take, f"in shares {IN_LIMITED}]", "in shares if False]"),
    ],
    a_limit_is_counted_from_the_look_at_which_it_was_learnt: [
        (Claimer._learn, "Count(self.looks.number)", "Count(-5)"),
        (Claimer._learn_queue, "Count(self.looks.number)", "Count(-5)"),
    ],
    a_limit_that_was_lifted_is_learnt_anew: [(Claimer._learn, "self.counts.of.pop(tenant_id, None)", "pass")],
    a_count_moves_on_with_each_claim: [
        (Claimer._learn, "count.told(oldest, self.looks.proven)", "pass"),
        (Claimer._learn_queue, "self.counts.queue.told(", "(lambda *_: None)("),
    ],
    a_full_tenant_is_passed_over: [
        (Claimer._learn, "if allowed < share.most:", "if False:"),
        (Passed.at_limit, "self.ring.pass_over(tenant_id)", "pass"),
    ],
    no_more_are_picked_than_may_start: [
        (Claimer._take, "min(share.most, free)", "share.most"),
    ],
    without_limits_a_share_is_not_cut: [
        (Claimer._take, f"{IN_LIMITED} else share", "if True else share"),
    ],
    who_is_under_a_limit_waits_for_a_thread_without_a_question: [
        (Claimer.claim, "self._startable(chosen, free)", "chosen"),
        (Claimer._startable, "self.passed.tie(share.tenant_id)", "pass"),
    ],
    a_thread_that_is_missing_holds_back_who_is_under_a_limit_alone: [
        (Claimer._startable, " if share.tenant_id not in self.ring.limited]", " if False]"),
    ],
    test_claim_left.test_under_a_limit_no_more_are_locked_than_there_are_threads: [
        (Claimer._take, "min(share.most, free)", "1"),
    ],
    a_claim_is_one_round_trip: [
        (Claimer._take, f"in shares {IN_LIMITED}]", "in shares]"),
        (Claimer._learn_queue, "if not room.limited:", "if False:"),
        (Claimer._send, "if queue:", "if True:"),
        (Claimer._send, "connection.pipeline() if locks", "connection.pipeline() if False"),
    ],
    test_claim_limits.test_a_tenants_limit_spans_its_queues: [
        (Claimer._send, "if limited:", "if False:"),
    ],
}
