"""What each guard of a claimer prevents: a small check that fails without it."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from jobs.leases import Claimer, ProcessExpired, claim
from jobs.leases.claim import _shares
from jobs.models import QueueEntry
from tests.db import test_claim
from tests.db import test_claim_fairness as fairness
from tests.db.test_claim_fairness import Counted, backlog, by_tenant, claimer
from tests.factories import come_due, process, schedule, server_time
from tests.mutating import Mutants

Connection = psycopg.Connection[Any]
SOON = timedelta(seconds=4)
NEVER = float("inf")
MANY = 2**60
"""More than any tenant's id."""


class Starts(Counted):
    """Keeps where looks began."""

    def __init__(self, here: Connection) -> None:
        super().__init__(here)
        self.after: list[int] = []

    def execute(self, statement: str, values: dict[str, Any]) -> Any:
        self.after.append(values["after"])
        return super().execute(statement, values)


# rounds


def an_empty_queue_gives_nothing(here: Connection) -> None:
    assert claimer(here).claim(here, 9, 9) == []


def a_claim_goes_round_once(here: Connection) -> None:
    backlog(here, {"a": 1})
    mine = claimer(here)
    mine._after = MANY
    assert len(mine.claim(here, 9, 9)) == 1


def a_claim_goes_on_where_its_look_ended(here: Connection) -> None:
    tenant = backlog(here, {f"t{n:02}": 1 for n in range(20)})
    idle = QueueEntry.objects.exclude(tenant_id=tenant["t19"])
    idle.update(run_at=server_time(here) + SOON)
    mine = claimer(here)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claim, "HOPS", 8)
        assert by_tenant(mine.claim(here, 9, 9)) == {tenant["t19"]: 1}


def a_tenant_cut_off_in_its_priorities_is_begun_again(here: Connection) -> None:
    for slug in ("first", "second"):
        for priority in range(5):
            schedule(tenant=slug, priority=priority, delay=SOON)
    last = backlog(here, {"second": 1}, priority=-1)["second"]
    mine = claimer(here)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claim, "HOPS", 8)
        assert by_tenant(mine.claim(here, 9, 9)) == {last: 1}


def a_served_tenant_is_not_begun_again(here: Connection) -> None:
    tenant = backlog(here, {"first": 2, "second": 2})
    mine = claimer(here)
    taken = [by_tenant(mine.claim(here, 1, 1)) for _ in range(2)]
    assert taken == [{tenant["first"]: 1}, {tenant["second"]: 1}]


def claimers_do_not_start_in_step(here: Connection) -> None:
    starts = Starts(here)
    for _ in range(20):
        Claimer("test.noop", 0, []).claim(starts, 1, 1)  # type: ignore[arg-type]
    assert len(set(starts.after)) > 2


def a_batch_is_filled(here: Connection) -> None:
    backlog(here, {"a": 8, "b": 8, "c": 8})
    assert len(claimer(here).claim(here, 8, 8)) == 8


# what a claimer learns


def an_expired_process_is_told(here: Connection) -> None:
    backlog(here, {"a": 1})
    mine = claimer(here)
    here.execute("DELETE FROM jobs_process")
    with suppress(ProcessExpired):
        mine.claim(here, 9, 9)
        raise AssertionError("it was not told")


def an_unknown_type_is_met_once_in_a_while(here: Connection) -> None:
    schedule("test.echo", queue="test.noop")
    come_due(here)
    mine = Claimer("test.noop", process(here), ["test.noop"])
    met = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claim, "PASS_SECONDS", NEVER)
        for _ in range(2):
            mine.claim(here, 9, 9)
            met.append(mine.met_unknown)
    assert met == [True, False]


def what_is_not_due_is_not_unknown(here: Connection) -> None:
    schedule(tenant="early", delay=SOON)
    backlog(here, {"due": 1})
    mine = claimer(here)
    mine.claim(here, 9, 9)
    assert not mine.met_unknown


def who_gave_something_is_not_passed_over(here: Connection) -> None:
    mine = claimer(here)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claim, "PASS_SECONDS", NEVER)
        for _ in range(2):
            backlog(here, {"a": 1})
            assert len(mine.claim(here, 9, 9)) == 1


MUTANTS: Mutants = {
    an_empty_queue_gives_nothing: [(Claimer.claim, "if pairs and (taken", "if (taken")],
    a_claim_goes_round_once: [(Claimer.claim, "ends < 2", "ends < 1")],
    a_claim_goes_on_where_its_look_ended: [
        (Claimer.claim, "ends += end", "ends += 1"),
        (Claimer._hop, "len(rows) < HOPS and ", ""),
    ],
    a_tenant_cut_off_in_its_priorities_is_begun_again: [
        (Claimer._hop, "tenant if ready else tenant - 1", "tenant")
    ],
    a_served_tenant_is_not_begun_again: [(Claimer._hop, "tenant if ready else tenant - 1", "tenant - 1")],
    fairness.test_a_batch_smaller_than_the_number_of_tenants_goes_round: [
        (Claimer._hop, " and len(pairs) < wanted", "")
    ],
    fairness.test_the_cursor_finds_tenants_on_both_sides_of_it: [(Claimer._hop, "self._after = 0", "pass")],
    claimers_do_not_start_in_step: [(Claimer._hop, "random.getrandbits(10)", "0")],
    fairness.test_a_tenant_whose_weight_fills_the_batch_does_not_come_again_before_the_others: [
        (Claimer._take, "self._after = chosen[-1][0].tenant_id", "pass"),
        (_shares, "if left <= 0:", "if False:"),
    ],
    fairness.test_a_tenant_gets_its_weight_in_each_claim: [(_shares, "pair.weight * quantum", "quantum")],
    a_batch_is_filled: [(_shares, "-(-size // total)", "size // total")],
    test_claim.test_entries_that_crashed_twice_are_only_for_a_process_of_their_own: [
        (Claimer._take, '"suspects": self.suspects', '"suspects": False')
    ],
    test_claim.test_the_claimers_clock_is_set_by_each_claim: [
        (Claimer._read, "self.clock.observe(now)", "pass")
    ],
    an_expired_process_is_told: [(Claimer._read, "if room == -1:", "if False:")],
    an_unknown_type_is_met_once_in_a_while: [
        (Claimer.claim, "self.met_unknown = False", "pass"),
        (Claimer._learn, "self.met_unknown = True", "pass"),
        (Claimer._learn, "now + PASS_SECONDS", "now"),
    ],
    what_is_not_due_is_not_unknown: [(Claimer._hop, "if ready\n", "\n")],
    who_gave_something_is_not_passed_over: [(Claimer._learn, "not seen and ", "")],
}
