"""What each guard of a claimer prevents that keeps what is held, rated or noisy out of its way: a small check that fails
without it. See guards_leases_claim."""

from __future__ import annotations

from typing import Any

import psycopg

from jobs.leases import Claimer
from jobs.leases.door import Door
from jobs.leases.passed import Passed
from jobs.models import Hold, Queue, RateBucket, Tenant
from tests.db import test_claim_holds as holds
from tests.db import test_claim_noise as noise
from tests.db import test_claim_rates as rates
from tests.mutating import Mutants

Connection = psycopg.Connection[Any]


def _clean(here: Connection) -> None:
    here.execute("DELETE FROM jobs_queueentry")
    Hold.objects.all().delete()
    RateBucket.objects.all().delete()
    Queue.objects.all().delete()
    Tenant.objects.update(rate=None, burst=None)


def what_is_held_is_passed_over(here: Connection) -> None:
    for scope in holds.SCOPES:
        holds.test_what_is_held_is_not_asked_for_again_and_again(here, scope)
        _clean(here)


def what_was_lifted_is_noticed(here: Connection) -> None:
    for scope in holds.SCOPES:
        holds.test_a_hold_that_was_lifted_is_noticed_within_the_longest_wait(here, scope)
        _clean(here)


def what_drains_drains(here: Connection) -> None:
    for scope in ("queue", "all"):
        holds.test_what_drains_comes_at_its_rate_and_the_rest_at_once_when_it_is_over(here, scope)
        _clean(here)


def the_next_start_is_known(here: Connection) -> None:
    for kind in ("tenant", "queue"):
        rates.test_a_claimer_knows_when_the_next_one_may_start(here, kind)
        _clean(here)


def a_raised_rate_is_noticed(here: Connection) -> None:
    for kind in ("tenant", "queue"):
        rates.test_a_rate_that_was_raised_is_noticed_within_the_longest_wait(
            here, kind, {"rate": None, "burst": None}
        )
        _clean(here)


CLAIMABLE: Any = Claimer.claimable.fget  # type: ignore[attr-defined]
SHUT_FOR: Any = Door.shut_for.fget  # type: ignore[attr-defined]
MUTANTS: Mutants = {
    what_is_held_is_passed_over: [
        (Claimer.claim, "if self.door.shut_for is not None:", "if False:"),
        (SHUT_FOR, "self._closed_until if now < self._closed_until else ", ""),
        (Claimer._learn_queue, "if room.size == 0 and room.wait:", "if False:"),
        (Passed._question, " if at <= now", ""),
        (Passed._await, "if wait:", "if False:"),
    ],
    holds.test_a_held_tenant_under_a_limit_is_passed_over_as_held: [
        (Claimer._learn, "self.passed.at_limit(tenant_id, wait)", "self.passed.at_limit(tenant_id, None)"),
    ],
    what_was_lifted_is_noticed: [
        (Passed._await, "min(wait, LONGEST_WAIT)", "min(wait, 9 * LONGEST_WAIT)"),
        (Door.close, "min(wait, LONGEST_WAIT)", "min(wait, 9 * LONGEST_WAIT)"),
        (Claimer.retry_in, " if shut_for is None else shut_for", ""),
    ],
    what_drains_drains: [
        (Claimer._send, " or self.draining", ""),
        (Claimer._learn_queue, "self.draining = room.noisy_share, room.draining", "_ = room.noisy_share, 0"),
    ],
    the_next_start_is_known: [
        (CLAIMABLE, " and self.door.shut_for is None", ""),
        (SHUT_FOR, "until - now if now < until else None", "9.0 if now < until else None"),
        (Passed._await, "max(FREE_SECONDS, min(wait, LONGEST_WAIT))", "LONGEST_WAIT"),
        (Door.close, "max(FREE_SECONDS, min(wait, LONGEST_WAIT))", "LONGEST_WAIT"),
    ],
    a_raised_rate_is_noticed: [(Passed._await, "self.later[tenant_id] = ", "_ = ")],
    noise.test_no_more_of_a_tenant_is_claimed_than_there_is_room_for: [
        (Claimer._hush, "min(share.most, room)", "share.most"),
        (Claimer._hush, "if room is None:", "if True:"),
        (Claimer._hush, "if noise is None:", "if False:"),
    ],
    noise.test_who_has_no_room_is_passed_over_until_one_of_its_jobs_ends: [
        (Passed.hushed, "self.ring.pass_over(tenant_id)", "pass"),
        (Passed.settled, " or tenant_id in self.noisy", ""),
    ],
    noise.test_who_has_no_room_is_asked_for_again_after_the_longest_wait: [
        (Passed.hushed, "+ LONGEST_WAIT", "+ 9 * LONGEST_WAIT"),
        (Passed.bring_back, "(self.busy, self.noisy)", "(self.busy,)"),
        (Passed.retry_in, "(self.busy, self.later, self.noisy)", "(self.busy, self.later)"),
    ],
    noise.test_when_nobody_has_room_no_statement_is_sent: [
        (Claimer.claim, "elif looked or self.passed:", "elif looked:"),
        (Claimer.claim, "if shares and (claims", "if (claims"),
    ],
    noise.test_it_is_told_whether_others_wait_and_the_queues_own_share: [
        (Claimer._hush, "len(self.ring) > 1", "True"),
        (Claimer._hush, "len(self.ring) > 1", "False"),
        (Claimer._learn_queue, "self._noisy_share, ", "_, "),
    ],
    noise.test_who_may_fill_the_workers_is_not_asked_for: [
        (Claimer._hush, "if share.tenant_id not in self._exempt:", "if True:"),
        (Claimer._learn, "self._exempt.discard", "self._exempt.add"),
        (Claimer._learn, "self._exempt.add if exempt", "self._exempt.discard if exempt"),
    ],
}
