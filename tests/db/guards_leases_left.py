"""What each guard of a claim prevents that picks what must start at once, or is not due yet: a small check that fails
without it. See guards_leases_claim."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from jobs.leases import Claimer, reply
from jobs.leases.passed import Passed
from jobs.models import QueueEntry
from tests.db import test_claim_ahead, test_claim_left
from tests.db.guards_leases_claim import _sent
from tests.db.test_claim_fairness import claimer
from tests.db.test_claim_left import Started, change, due, ids
from tests.mutating import Mutants

Connection = psycopg.Connection[Any]


def what_must_start_at_once_waits(here: Connection) -> None:
    for why in ({"max_attempts": 1}, {"crashes": 1}):
        QueueEntry.objects.all().delete()
        test_claim_left.test_what_must_start_at_once_waits_for_a_free_thread(here, why)


def who_is_tied_is_asked_once(here: Connection) -> None:
    """Also by a worker that has more claims than threads."""
    for free in (0, -2):
        change(*due(1), max_attempts=1)
        assert _sent(here, claimer(here), 9, free) == ["hop", "look", "claim"]


def who_was_served_is_not_tied(here: Connection) -> None:
    jobs = due(9)
    change(jobs[0], max_attempts=1)
    mine = Started(here)
    assert mine.claim(4, 0) == ids(*jobs[1:4])
    assert mine.claim(4, 0) == ids(*jobs[4:7])


def who_ran_dry_is_not_tied(here: Connection) -> None:
    tied, dry = due(1, tenant="tied"), due(1, tenant="dry")
    change(*tied, max_attempts=1)
    mine = Started(here)
    change(*dry, parked="type")
    assert mine.claim(9, 0) == []
    assert mine.claimer.passed.tied == {tied[0].tenant_id}


def who_is_free_again_is_no_longer_tied(here: Connection) -> None:
    change(*due(1), max_attempts=1)
    mine = Started(here)
    assert mine.claim(free=0) == []
    assert mine.claimer.waiting
    assert len(mine.claim(free=1)) == 1
    mine.claim(free=1)
    assert not mine.claimer.waiting


def no_mark_passes_now(here: Connection) -> None:
    with pytest.MonkeyPatch.context() as patch:
        test_claim_ahead.test_what_comes_due_meanwhile_does_not_lie_behind_a_claim_ahead(here, patch)


MUTANTS: Mutants = {
    what_must_start_at_once_waits: [
        (Claimer.claim, "if free > 0:", "if False:"),
        (Claimer._take, '"free": free', '"free": 10**6'),
        (reply.read, "(run_at, job_id) if taken else just_before(run_at, job_id)", "(run_at, job_id)"),
        (reply.read, "stuck.add(pair)", "pass"),
        (Claimer._ran_dry, "if pair not in stuck:", "if True:"),
        (Passed.tie, "self.tied.add(tenant_id)", "pass"),
    ],
    test_claim_left.test_what_need_not_start_at_once_is_taken_past_what_must: [
        (reply.read, "if clean or pair not in stuck:", "if True:"),
        (reply.read, "clean = False", "pass"),
    ],
    test_claim_left.test_a_tenant_that_could_give_nothing_does_not_hold_up_the_others: [
        (Claimer.claim, "if free > 0:", "if True:"),
        (Passed.tie, "self.ring.pass_over(tenant_id)", "pass"),
    ],
    who_is_tied_is_asked_once: [
        (Claimer._learn_all, "(reply.claims or not free)", "reply.claims"),
        (Claimer.claim, "max(0, free)", "free"),
    ],
    who_was_served_is_not_tied: [
        (Claimer._learn_all, "{claim.tenant_id for claim in reply.claims}", "set()"),
        (Claimer._tie, "share.tenant_id not in served and ", ""),
    ],
    who_ran_dry_is_not_tied: [(Claimer._tie, " and stuck.intersection(share.pairs)", "")],
    who_is_free_again_is_no_longer_tied: [
        (Passed.untie, "self.tied.clear()", "pass"),
        (Passed.__bool__, " or self.tied", ""),
    ],
    test_claim_ahead.test_an_entry_is_claimed_ahead_and_says_when_it_may_start: [
        (Claimer._take, "self.line.ahead,", "0 * self.line.ahead,"),
        (Claimer.__init__, "self.ahead = self.line.ahead = ahead", "self.ahead = ahead"),
    ],
    test_claim_ahead.test_a_queue_that_became_limited_is_claimed_at_its_time_alone: [
        (Claimer._learn_queue, "timedelta() if room.limited or room.draining else self.ahead", "self.ahead"),
        (Claimer._learn_queue, "timedelta() if room.limited or room.draining else self.ahead", "timedelta()"),
    ],
    test_claim_ahead.test_nobody_wakes_for_what_was_claimed_with_what_is_due: [
        (Claimer.claim, "if self.line.coming:", "if False:")
    ],
    no_mark_passes_now: [(Claimer._learn_all, "min(mark, (room.now, NIL))", "mark")],
}
