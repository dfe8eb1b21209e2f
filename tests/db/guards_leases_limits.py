"""What each guard of a claimer's limits prevents: a small check that fails without it."""

from __future__ import annotations

from typing import Any

import psycopg

from jobs.leases import claim
from jobs.leases.claim import Claimer
from jobs.models import Queue, Tenant
from tests.db import test_claim_fairness as fairness
from tests.db import test_claim_limits
from tests.db.guards_leases_claim import MANY, NEVER
from tests.db.test_claim_fairness import Counted, backlog, by_tenant, claimer
from tests.mutating import Mutants
from tests.schema import guards_claim

Connection = psycopg.Connection[Any]


class Few(Counted):
    """Allows only so many statements."""

    def __init__(self, here: Connection, most: int) -> None:
        super().__init__(here)
        self.most = most

    def execute(self, *args: Any) -> Any:
        assert self.statements < self.most
        return super().execute(*args)


def _limit_queue(most: int) -> None:
    Queue.objects.create(name="test.noop", max_running=most)


def _limit_tenants(most: int) -> None:
    Tenant.objects.update(max_running=most)


def a_full_queue_is_looked_at_once(here: Connection) -> None:
    backlog(here, {"a": 2})
    _limit_queue(0)
    mine = claimer(here)
    mine._queue_limited = True
    assert mine.claim(Few(here, 3), 1, 1) == []  # type: ignore[arg-type]


def a_queues_limit_that_was_just_learnt_costs_no_round(here: Connection) -> None:
    backlog(here, {"a": 1})
    _limit_queue(1)
    mine = claimer(here)
    mine._after = MANY
    assert len(mine.claim(here, 9, 9)) == 1


def a_limited_queue_is_gone_round_as_well(here: Connection) -> None:
    backlog(here, {"a": 1})
    _limit_queue(1)
    mine = claimer(here)
    mine._queue_limited, mine._after = True, MANY
    assert len(mine.claim(here, 9, 9)) == 1


def a_full_queue_is_looked_at_again_soon(here: Connection) -> None:
    backlog(here, {"a": 1})
    _limit_queue(0)
    mine = claimer(here)
    mine.claim(here, 9, 9)
    assert mine.retry_in() == claim.FULL_SECONDS


def a_full_tenant_is_looked_at_again_soon(here: Connection) -> None:
    backlog(here, {"a": 1})
    _limit_tenants(0)
    mine = claimer(here)
    mine.claim(here, 9, 9)
    assert mine.retry_in() is not None
    assert not mine.met_unknown


def without_limits_there_is_nothing_to_wait_for(here: Connection) -> None:
    mine = claimer(here)
    assert mine.retry_in() is None
    mine.settled(1)
    assert mine.retry_in() is None


def the_first_that_may_be_free_is_waited_for(here: Connection) -> None:
    mine = claimer(here)
    mine._full = {1: 0.0, 2: NEVER}
    assert mine.retry_in() == 0.0


def an_own_settle_brings_a_tenant_back(here: Connection) -> None:
    tenant = backlog(here, {"a": 1})["a"]
    mine = claimer(here)
    mine._full = {tenant: NEVER}
    mine.settled(tenant)
    assert len(mine.claim(here, 9, 9)) == 1


def a_full_tenant_is_passed_over(here: Connection) -> None:
    tenant = backlog(here, {"a": 1})["a"]
    mine = claimer(here)
    mine._full = {tenant: NEVER}
    assert mine.claim(Few(here, 2), 9, 9) == []  # type: ignore[arg-type]


def a_pair_or_tenant_is_passed_over_for_a_while(here: Connection) -> None:
    tenant = backlog(here, {"full": 1, "unknown": 1})
    mine = claimer(here)
    mine._full, mine._passed = {tenant["full"]: 0.0}, {(tenant["unknown"], 0): 0.0}
    assert set(by_tenant(mine.claim(here, 9, 9))) == set(tenant.values())


def what_is_held_under_a_tenants_limit_says_so(here: Connection) -> None:
    backlog(here, {"a": 1})
    _limit_tenants(1)
    mine = claimer(here)
    assert [each.limited for each in mine.claim(here, 9, 9)] == [True]
    assert mine.retry_in() is None


def what_is_held_under_a_queues_limit_says_so(here: Connection) -> None:
    backlog(here, {"a": 1})
    _limit_queue(1)
    assert [each.limited for each in claimer(here).claim(here, 9, 9)] == [True]


def who_was_cut_off_by_a_limit_is_not_unknown(here: Connection) -> None:
    backlog(here, {"a": 1, "b": 1})
    _limit_queue(1)
    mine = claimer(here)
    assert len(mine.claim(here, 2, 2)) == 1
    assert not mine.met_unknown


MUTANTS: Mutants = {
    a_full_queue_is_looked_at_once: [
        (Claimer.claim, "break", "pass"),
        (Claimer._lock, " if limited else []", ""),
    ],
    guards_claim.what_waits_counts_against_no_limit: [
        (Claimer.claim, "if limited:", "if True:"),
        (Claimer._take, "not limited and not self._queue_limited", "not limited"),
        (Claimer._read, "self._queue_limited = queue_limited", "pass"),
    ],
    a_queues_limit_that_was_just_learnt_costs_no_round: [(Claimer.claim, "continue", "pass")],
    a_limited_queue_is_gone_round_as_well: [
        (Claimer.claim, "if pairs and self._queue_limited", "if self._queue_limited")
    ],
    a_full_queue_is_looked_at_again_soon: [(Claimer.retry_in, "if self._queue_limited:", "if False:")],
    a_full_tenant_is_looked_at_again_soon: [
        (Claimer._learn, "self._full.setdefault(tenant, now + FULL_SECONDS)", "pass"),
        (Claimer._learn, "if allowed == 0:", "if False:"),
    ],
    without_limits_there_is_nothing_to_wait_for: [
        (Claimer.retry_in, " if self._full else None", ""),
        (Claimer.settled, "tenant_id, None", "tenant_id"),
    ],
    the_first_that_may_be_free_is_waited_for: [
        (Claimer.retry_in, "min(self._full", "max(self._full"),
        (Claimer.retry_in, "max(0.0, ", "min(0.0, "),
    ],
    an_own_settle_brings_a_tenant_back: [(Claimer.settled, "self._full.pop(tenant_id, None)", "pass")],
    a_full_tenant_is_passed_over: [
        (Claimer._hop, "list(self._full)", "[]"),
        (Claimer.claim, "ends < 2", "ends < 3"),
    ],
    a_pair_or_tenant_is_passed_over_for_a_while: [
        (Claimer._hop, "self._passed.items() if until > now", "self._passed.items()"),
        (Claimer._hop, "self._full.items() if until > now", "self._full.items()"),
    ],
    test_claim_limits.test_a_tenants_limit_spans_its_queues: [
        (Claimer._take, "if pair.limited", "if False"),
        (Claimer._take, "not limited and ", ""),
    ],
    fairness.test_a_claim_is_two_statements_and_three_or_four_with_limits: [
        (Claimer._take, "if pair.limited", ""),
        (Claimer._lock, "if self._queue_limited:", "if True:"),
    ],
    guards_claim.a_tenants_limit_counts_what_runs: [(Claimer._read, "if job_id is not None:", "if True:")],
    what_is_held_under_a_tenants_limit_says_so: [
        (Claimer._lock, "set(limited) - set(locked)", "set(limited)"),
        (Claimer._read, "limited or queue_limited", "queue_limited"),
    ],
    what_is_held_under_a_queues_limit_says_so: [(Claimer._read, "limited or queue_limited", "limited")],
    who_was_cut_off_by_a_limit_is_not_unknown: [
        (Claimer._learn, ">= room", "> room"),
        (Claimer._learn, " and not cut", ""),
    ],
}
