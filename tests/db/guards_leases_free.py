"""What each guard of a claimer's waiting for limits prevents: a small check that fails without it. See
guards_leases_claim."""

from __future__ import annotations

from collections import deque
from typing import Any

import psycopg

from jobs.leases import Claimer, passed
from jobs.leases.counts import Count, Counts
from jobs.leases.passed import BUSY_SHARE, FREE_SECONDS, IDLE_SHARE, Passed
from jobs.models import Tenant
from tests.db import test_claim_free as free
from tests.db.guards_leases_claim import _sent
from tests.db.guards_leases_limits import _informed
from tests.db.test_claim_fairness import backlog, by_tenant, claimer
from tests.db.test_claim_free import Full
from tests.mutating import Mutants
from tests.unit.looking import TIME

Connection = psycopg.Connection[Any]
NEVER = float("inf")


def _limit_tenants(most: int | None) -> None:
    Tenant.objects.update(max_running=most)


def without_limits_there_is_nothing_to_wait_for(here: Connection) -> None:
    mine = claimer(here)
    assert (mine.retry_in(), mine.claimable, mine.waiting) == (None, False, False)


def the_first_that_may_be_free_is_waited_for(here: Connection) -> None:
    mine = claimer(here)
    mine.passed.busy = {1: TIME.now + 3.0, 2: NEVER}
    assert mine.retry_in() == 3.0
    mine.passed.busy = {1: TIME.now - 3.0}
    assert mine.retry_in() == 0.0
    mine.passed.full = {3}
    mine.passed._asked = TIME.now
    mine.passed.busy = {1: TIME.now + 3.0}
    assert abs((mine.retry_in() or 0) - FREE_SECONDS) < 1e-6


PASSED, TIMED = ("full", "later", "busy", "noisy", "_freed", "tied"), ("later", "busy", "noisy")


def whatever_may_be_claimed_later_is_waited_for(here: Connection) -> None:
    for name in PASSED:
        mine = claimer(here)
        setattr(mine.passed, name, {1: NEVER} if name in TIMED else deque([1]))
        assert mine.waiting
    backlog(here, {"a": 1})
    assert _informed(here).waiting


def who_was_locked_comes_back_at_its_time(here: Connection) -> None:
    tenant = backlog(here, {"now": 1, "later": 1})
    mine = _informed(here)
    mine.passed.busy = {tenant["now"]: TIME.now, tenant["later"]: TIME.now + 1.0}
    for each in tenant.values():
        mine.ring.pass_over(each)
    assert by_tenant(mine.claim(here, 9, 9)) == {tenant["now"]: 1}
    assert mine.passed.busy == {tenant["later"]: TIME.now + 1.0}
    TIME.now += 1.0
    assert by_tenant(mine.claim(here, 9, 9)) == {tenant["later"]: 1}
    assert mine.retry_in() is None


def all_that_have_settled_come_back(here: Connection) -> None:
    full = Full(here, "a", "b")
    for slug in ("a", "b"):
        full.claimer.settled(full.end(slug))
    assert full.claim() == dict.fromkeys(full.tenant.values(), 1)


def who_is_free_again_is_not_waited_for(here: Connection) -> None:
    full = Full(here, "a")
    _limit_tenants(None)
    assert full.claim_when_asked_again()
    assert full.claimer.retry_in() is None


def a_question_is_not_asked_for_nobody(here: Connection) -> None:
    backlog(here, {"a": 1})
    assert "free" not in _sent(here, _informed(here))


def a_question_that_takes_long_is_asked_seldom(here: Connection) -> None:
    for busy, share in ((False, IDLE_SHARE), (True, BUSY_SHARE)):
        free.test_a_question_that_takes_long_is_asked_seldom(here, busy, share)
        here.execute("DELETE FROM jobs_queueentry")


def limits_count_from_the_oldest_lease(here: Connection) -> None:
    for kind in ("tenant", "queue"):
        free.test_a_claim_counts_from_the_oldest_lease_known(here, kind)
        here.execute("DELETE FROM jobs_queueentry")
        _limit_tenants(None)


def proofs_are_waited_for(here: Connection) -> None:
    free.test_what_was_learnt_of_a_limit_is_trusted_when_it_is_proven()


MUTANTS: Mutants = {
    without_limits_there_is_nothing_to_wait_for: [
        (Passed.retry_in, " if times else None", ""),
        (Claimer.claimable.fget, "len(self.ring) > 0 and ", ""),  # type: ignore[attr-defined]
    ],
    the_first_that_may_be_free_is_waited_for: [
        (Passed.retry_in, "min(times)", "max(times)"),
        (Passed.retry_in, "max(0.0, ", "min(0.0, "),
        (Passed.retry_in, "if self.full:", "if False:"),
    ],
    whatever_may_be_claimed_later_is_waited_for: [
        (Passed.__bool__, f"self.{name}", "False") for name in PASSED
    ]
    + [
        (Claimer.waiting.fget, "len(self.ring) > 0 or ", ""),  # type: ignore[attr-defined]
        (Claimer.waiting.fget, " or bool(self.passed)", ""),  # type: ignore[attr-defined]
    ],
    who_was_locked_comes_back_at_its_time: [
        (Passed.bring_back, "if until <= now", "if until < now"),
        (Passed.bring_back, " if until <= now", ""),
        (Passed.bring_back, "del kind[tenant_id]", "pass"),
        (Passed.bring_back, "self.ring.bring_back(tenant_id)", "pass"),
    ],
    free.test_who_is_asked_for_in_vain_is_asked_for_more_and_more_seldom: [
        (passed.wait_after, "FREE_SECONDS * min", "FREE_SECONDS or min"),
        (passed.wait_after, "max(0, vain - IN_VAIN)", "vain"),
        (Passed._question, "self._vain = min(self._vain + 1, MOST_IN_VAIN)", "pass"),
        (Passed._question, "self._vain = max(0, self._vain - 1)", "pass"),
        (Passed._question, ", MOST_IN_VAIN)", ", 99)"),
    ],
    # free slots
    all_that_have_settled_come_back: [
        (Passed.bring_back, "while self._freed:", "if self._freed:"),
        (Passed._return, "self.ring.bring_back(tenant_id)", "pass"),
    ],
    who_is_free_again_is_not_waited_for: [(Passed._return, "self.full.discard(tenant_id)", "pass")],
    free.test_an_own_settle_needs_no_question: [
        (Passed.settled, "self._freed.append(tenant_id)", "pass"),
        (Passed.settled, "tenant_id in self.full or ", ""),
    ],
    free.test_who_has_a_free_slot_is_found_within_a_moment: [
        (Claimer.claim, "self._bring_back(connection)", "pass"),
        (Passed._question, "in ask(tenants):", "in []:"),
        (Passed._await, "self.full.add(tenant_id)", "pass"),
    ],
    free.test_a_slot_that_is_filled_at_once_is_left_to_who_fills_it: [
        (Passed._question, "tenant_id in self.full and tenant_id not in seen", "False"),
        (Passed._question, "seen, self._free = self._free, set()", "seen = self._free"),
    ],
    free.test_who_had_a_slot_is_asked_for_alone_and_soon: [
        (Passed._question, "seen or self.full", "self.full"),
        (Passed._interval, "STILL_FREE_SECONDS if self._free else ", ""),
    ],
    free.test_who_had_a_slot_and_has_settled_since_is_not_asked_for_alone: [
        (Passed._return, "self._free.discard(tenant_id)", "pass"),
    ],
    free.test_who_has_none_is_asked_for_again_a_moment_later: [
        (
            Passed._interval,
            "max(STILL_FREE_SECONDS if self._free else wait_after(self._vain), share",
            "max(0.0, share",
        ),
        (Passed._question, "self._asked = time.monotonic()", "self._asked = 0.0"),
    ],
    a_question_is_not_asked_for_nobody: [(Passed._question, "if not tenants:", "if False:")],
    a_question_that_takes_long_is_asked_seldom: [
        (Passed._interval, "BUSY_SHARE if len(self.ring) else IDLE_SHARE", "BUSY_SHARE"),
        (Passed._interval, "BUSY_SHARE if len(self.ring) else IDLE_SHARE", "IDLE_SHARE"),
        (Passed._interval, ", share * self._asking)", ", 0.0)"),
        (Passed._question, "self._asking = self._asked - now", "pass"),
    ],
    free.test_a_question_counts_from_the_oldest_lease_known: [
        (Claimer._ask, "self.counts.oldest(tenant_id)", "0")
    ],
    limits_count_from_the_oldest_lease: [
        (Counts.oldest, "count.oldest if count else 0", "0"),
        (Claimer._take, "self.counts.oldest(share.tenant_id)", "0"),
        (Claimer._take, "self.counts.queue.oldest if self.counts.queue else 0", "0"),
    ],
    proofs_are_waited_for: [
        (Count.told, "oldest if self.learnt < proven else 0", "oldest"),
        (Count.told, "self.learnt < proven", "self.learnt <= proven"),
    ],
}
