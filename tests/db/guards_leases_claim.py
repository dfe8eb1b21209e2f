"""What each guard of a claim prevents: a small check that fails without it. No look is due but at the start, and the
time of limits stands still: a claimer goes by its marks."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any, cast

import psycopg
import pytest

from jobs.leases import Claimer, ProcessExpired, looks, reply
from jobs.leases.looks import EVERY
from jobs.models import Tenant
from jobs.registry import registry
from tests.db import test_claim
from tests.db import test_claim_fairness as fairness
from tests.db.test_claim_fairness import backlog, by_tenant, claimer
from tests.db.test_claim_left import Started, due, ids
from tests.factories import come_due, process, schedule, server_time
from tests.mutating import Mutants
from tests.statements import Noting
from tests.unit.looking import TIME

Connection = psycopg.Connection[Any]


def _sent(here: Connection, mine: Claimer, size: int = 9, free: int = 9) -> list[str]:
    noting = Noting(here)
    mine.claim(cast(Connection, noting), size, free)
    return noting.sent


# rounds


def an_empty_queue_is_looked_at_once(here: Connection) -> None:
    assert _sent(here, claimer(here)) == ["hop", "look"]


def who_knows_nothing_looks_although_none_is_due(here: Connection) -> None:
    mine = claimer(here)
    mine.looks.look(here)
    tenant = backlog(here, {"a": 1})["a"]
    assert by_tenant(mine.claim(here, 9, 9)) == {tenant: 1}


def who_knows_something_claims_it_before_a_look_that_is_due(here: Connection) -> None:
    backlog(here, {"a": 4})
    mine = claimer(here)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looks, "EVERY", EVERY)
        patch.setattr(looks, "time", TIME)
        mine.claim(here, 2, 2)
        TIME.now += EVERY + 0.01
        assert _sent(here, mine, 1, 1) == ["claim"]


def what_was_claimed_is_the_mark(here: Connection) -> None:
    backlog(here, {"a": 4})
    mine = claimer(here)
    taken = mine.claim(here, 3, 3)
    assert list(mine.ring.marks.values()) == [(taken[-1].run_at, taken[-1].held.job_id)]


def claims_go_on_from_marks_until_all_is_taken(here: Connection) -> None:
    backlog(here, {"a": 4})
    mine = claimer(here)
    mine.looks.look(here)
    assert [_sent(here, mine, 2, 2) for _ in range(2)] == [["claim"], ["claim"]]
    assert len(mine.ring) == 1
    mine.claim(here, 2, 2)
    assert len(mine.ring) == 0


def a_lower_priority_is_not_probed_for_what_a_higher_one_has_given(here: Connection) -> None:
    high, low = due(1, priority=5), due(5)
    mine = Started(here)
    assert mine.claim(2, 2) == ids(*high, low[0])
    assert [pair for share in mine.claimer.ring.choose(9) for pair in share.pairs] == [(low[0].tenant_id, 0)]
    assert mine.claim(9, 9) == ids(*low[1:])


def an_expired_process_is_told(here: Connection) -> None:
    backlog(here, {"a": 1})
    mine = claimer(here)
    here.execute("DELETE FROM jobs_process")
    with suppress(ProcessExpired):
        mine.claim(here, 9, 9)
        raise AssertionError("it was not told")


def the_clock_is_set_by_a_claim_alone(here: Connection) -> None:
    backlog(here, {"a": 1})
    mine = claimer(here)
    mine.looks.look(here)
    mine.looks.clock.observe(server_time(here) - timedelta(seconds=30))
    mine.claim(here, 1, 1)
    assert abs(mine.looks.clock.now() - server_time(here)) < timedelta(seconds=10)


def a_claim_of_a_tenant_without_a_row_has_a_name(here: Connection) -> None:
    tenant = backlog(here, {"gone": 1})["gone"]
    here.execute("DELETE FROM jobs_tenant")
    assert [each.tenant for each in claimer(here).claim(here, 5, 5)] == [str(tenant)]


def a_weight_is_learnt_from_claims(here: Connection) -> None:
    tenant = backlog(here, {"heavy": 20, "light": 20})
    mine = claimer(here)
    mine.looks.look(here)
    Tenant.objects.filter(pk=tenant["heavy"]).update(weight=3)
    mine.claim(here, 8, 8)
    mine.ring._cursor = 0
    assert by_tenant(mine.claim(here, 8, 8)) == {tenant["heavy"]: 6, tenant["light"]: 2}


def only_its_own_suspects_are_claimed(here: Connection) -> None:
    test_claim.test_entries_that_crashed_twice_are_only_for_a_process_of_their_own(here)


def what_is_unknown_is_left(here: Connection) -> None:
    known = schedule("test.noop", queue="test.noop")
    schedule("test.echo", queue="test.noop")
    come_due(here)
    claimed = Claimer("test.noop", process(here), ["test.noop"]).claim(here, 9, 9)
    assert [each.held.job_id for each in claimed] == [known.pk]


def each_claimer_sees_what_its_registry_knows(here: Connection) -> None:
    assert Claimer("test.noop", 0, registry.names()).types == list(registry.names())


MUTANTS: Mutants = {
    an_empty_queue_is_looked_at_once: [
        (Claimer.claim, "looked = True", "pass"),
        (Claimer.claim, "elif looked or self.passed:", "elif self.passed:"),
    ],
    who_knows_nothing_looks_although_none_is_due: [
        (Claimer.claim, "self.looks.forget()", "break"),
        (Claimer.claim, "elif looked or self.passed:", "elif True:"),
        (Claimer.claim, "range(ROUNDS)", "range(1)"),
    ],
    who_knows_something_claims_it_before_a_look_that_is_due: [
        (Claimer.claim, "busy=self.waiting", "busy=False"),
        (Claimer.claim, "self.looks.due(busy=self.waiting)", "True"),
    ],
    what_was_claimed_is_the_mark: [
        (Claimer._learn_all, "self.ring.advance(pair, min(mark, (room.now, NIL)))", "pass"),
        (
            reply.read,
            "if taken else just_before(run_at, job_id)",
            "if False else just_before(run_at, job_id)",
        ),
    ],
    claims_go_on_from_marks_until_all_is_taken: [
        (reply.read, "seen[tenant_id] += 1", "pass"),
        (Claimer._learn, "elif reply.seen[tenant_id] < allowed:", "elif reply.seen[tenant_id] <= allowed:"),
        (Claimer._learn, "share.pairs[: share.pairs.index(gave[-1])]", "share.pairs"),
        (Claimer._learn, "if allowed < share.most:", "if allowed <= share.most:"),
        (Claimer._ran_dry, "self.ring.exhausted(pair)", "pass"),
        (Claimer._learn_all, "cut=room.size < size", "cut=True"),
        (Claimer._learn, "share.pairs if not cut else []", "[]"),
    ],
    a_lower_priority_is_not_probed_for_what_a_higher_one_has_given: [
        (Claimer._learn, "share.pairs[: share.pairs.index(gave[-1])]", "[]"),
    ],
    an_expired_process_is_told: [(Claimer._learn_all, "if room.size == -1:", "if False:")],
    the_clock_is_set_by_a_claim_alone: [
        (Claimer._learn_all, "self.looks.clock.observe(room.moment)", "pass")
    ],
    a_claim_of_a_tenant_without_a_row_has_a_name: [(reply.read, "row[6] or str(tenant_id)", "row[6]")],
    a_weight_is_learnt_from_claims: [
        (Claimer._learn, "self.ring.learn(tenant_id, weight or 1, limited)", "pass")
    ],
    fairness.test_a_tenant_on_many_priorities_gets_no_more_than_one_on_a_single_one: [
        (
            Claimer._take,
            '"shares": arrays.int8s([share.most for',
            '"shares": arrays.int8s([9 * share.most for',
        ),
    ],
    test_claim.test_the_larger_priority_goes_first_within_a_tenant: [
        (Claimer._take, "last - len(share.pairs) + 1", "last"),
    ],
    only_its_own_suspects_are_claimed: [(Claimer._take, '"suspects": self.suspects', '"suspects": False')],
    what_is_unknown_is_left: [(Claimer._take, '"types": self.types', '"types": self.types + ["test.echo"]')],
}
