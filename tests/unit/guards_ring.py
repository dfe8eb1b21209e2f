"""What each guard of a ring prevents: a test that fails without it."""

from __future__ import annotations

from jobs.leases.ring import Ring, just_before
from tests.mutating import Mutants
from tests.unit import test_ring as ring
from tests.unit import test_ring_proofs as proofs
from tests.unit import test_ring_turns as turns


def what_lies_behind_takes_the_mark_back() -> None:
    for number in (None, 1):
        ring.test_what_lies_behind_the_mark_takes_it_back(number)


def a_mark_that_was_taken_back_is_the_floor() -> None:
    for back in (6, 4):
        proofs.test_a_mark_that_was_taken_back_meanwhile_is_the_floor(back)


def everybody_is_found() -> None:
    for cursor in (0, 2, 1000):
        turns.test_everybody_is_found_wherever_the_cursor_is(cursor)


def two_come_in_the_order_of_their_numbers() -> None:
    empty = Ring()
    for tenant in (2, 1):
        ring.saw(empty, (tenant, 0), 5)
    empty._cursor = 0
    assert ring.ready(empty) == [(1, 0), (2, 0)]


def nobody_is_chosen_for_nothing() -> None:
    some = turns.ring_of(1, 1, 1)
    assert all(share.most for share in some.choose(2))


def only_who_takes_a_turn_leaves() -> None:
    some = turns.ring_of(1, 1)
    some.pass_over(77)
    assert turns.chosen(some, 8) == {1: 4, 2: 4}


BEHIND = "(before < mark if job_id is not None else run_at < mark[0])"

MUTANTS: Mutants = {
    ring.test_a_mark_is_just_before_the_entry_that_was_seen: [
        (just_before, "int=job_id.int - 1", "int=job_id.int"),
        (just_before, " or not job_id.int", ""),
    ],
    what_lies_behind_takes_the_mark_back: [(Ring.see, BEHIND, "False")],
    ring.test_of_one_instant_an_entry_may_lie_behind_and_a_look_says_nothing: [
        (Ring.see, BEHIND, "before < mark"),
        (Ring.see, BEHIND, "run_at < mark[0]"),
    ],
    ring.test_a_leap_goes_on_to_what_is_known_and_never_back: [
        (Ring.leap, "run_at or now", "now"),
        (Ring.leap, "if run_at is None:", "if True:"),
    ],
    ring.test_a_leap_to_nothing_ends_at_its_moment: [
        (Ring.leap, "if run_at is None:", "if False:"),
    ],
    ring.test_a_mark_that_advances_never_goes_back: [
        (Ring.advance, "max(mark, self.marks[pair])", "mark"),
        (Ring.advance, "max(", "min("),
    ],
    ring.test_a_floor_stays_while_its_mark_advances_and_goes_back_with_it: [
        (Ring.see, "min(before, self.floors.get(pair, before))", "before"),
        (Ring.see, "min(before, self.floors.get(pair, before))", "self.floors.get(pair, before)"),
    ],
    ring.test_the_highest_priority_is_probed_first: [(Ring.pairs_of, "reverse=True", "reverse=False")],
    ring.test_a_pair_that_ran_dry_is_left_out_until_it_is_seen_again: [
        (Ring.exhausted, "priorities.discard(priority)", "priorities.clear()"),
        (Ring.exhausted, "priorities.discard(priority)", "pass"),
        (Ring.exhausted, "if not priorities:", "if True:"),
        (Ring.exhausted, "self._leave(tenant_id)", "pass"),
        (Ring.see, "self._ready.setdefault(tenant_id, set()).add(priority)", "pass"),
        (Ring.see, "self._enter(tenant_id)", "pass"),
        (Ring.__contains__, " and self._turns[at] == tenant_id", ""),
    ],
    ring.test_a_tenant_that_is_passed_over_stays_away_whatever_is_seen_of_it: [
        (Ring.pass_over, "self._leave(tenant_id)", "pass"),
        (Ring.pass_over, "self._away.add(tenant_id)", "pass"),
        (Ring.bring_back, "self._away.discard(tenant_id)", "pass"),
        (Ring.bring_back, "self._enter(tenant_id)", "pass"),
        (Ring._enter, "tenant_id not in self._away and ", ""),
    ],
    ring.test_a_tenant_that_comes_back_with_nothing_ready_takes_no_turn: [
        (Ring._enter, "self._ready.get(tenant_id) and ", "")
    ],
    ring.test_a_tenant_takes_one_turn_however_often_it_is_seen_or_brought_back: [
        (Ring._enter, " and tenant_id not in self:", ":")
    ],
    two_come_in_the_order_of_their_numbers: [
        (Ring._enter, "insort(self._turns, tenant_id)", "self._turns.append(tenant_id)")
    ],
    only_who_takes_a_turn_leaves: [
        (Ring._leave, "if tenant_id in self:", "if bisect_left(self._turns, tenant_id):"),
        (Ring.__contains__, "at < len(self._turns) and ", ""),
    ],
    ring.test_what_is_chosen_is_touched: [(Ring.choose, "self.touched.update(pairs)", "pass")],
    ring.test_limits_are_told_and_taken_back: [
        (Ring.learn, "self.limited.discard", "self.limited.add"),
        (Ring.see, "limited or tenant_id in self.limited", "tenant_id in self.limited"),
        (Ring.see, "limited or tenant_id in self.limited", "limited"),
    ],
    # turns
    turns.test_a_batch_is_shared_by_weight: [
        (Ring.choose, "-(-size // max(1, self._total))", "1"),
        (Ring.choose, "self._weights[tenant_id] * quantum", "quantum"),
        (Ring.choose, "self._weights[tenant_id] * quantum", "self._weights[tenant_id]"),
        (Ring._enter, "self._total += self._weights[tenant_id]", "pass"),
    ],
    turns.test_who_is_alone_has_all_of_it_whatever_was_left_to_him: [
        (Ring.choose, "len(self._turns) + 1 if", "len(self._turns) if"),
        (Ring.choose, "shares[0].most + count", "count"),
    ],
    turns.test_nobody_has_nothing_and_nothing_is_no_batch: [
        (Ring.choose, "max(1, self._total)", "self._total"),
        (Ring.choose, " if self._turns else 0", ""),
    ],
    turns.test_who_is_cut_off_goes_first_next_time_for_the_rest_and_once_more_for_what_is_left: [
        (Ring.choose, "-(-size // max(1, self._total))", "size // max(1, self._total)"),
        (Ring.choose, "self._owed if tenant_id == self._cursor else 0", "0"),
        (Ring.choose, "owed or self._weights", "self._weights"),
        (
            Ring.choose,
            "(tenant_id, wanted - count) if count < wanted else (tenant_id + 1, 0)",
            "(tenant_id + 1, 0)",
        ),
        (Ring.choose, "bisect_left(self._turns, self._cursor)", "0"),
        (Ring.choose, "min(left, wanted)", "wanted"),
        (Ring.choose, "left -= count", "pass"),
    ],
    turns.test_a_batch_that_ends_with_a_turn_owes_nobody: [
        (
            Ring.choose,
            "(tenant_id, wanted - count) if count < wanted else (tenant_id + 1, 0)",
            "(tenant_id, wanted - count)",
        ),
    ],
    turns.test_what_is_owed_goes_with_the_tenant_that_leaves: [
        (Ring.choose, "self._owed if tenant_id == self._cursor else 0", "self._owed")
    ],
    nobody_is_chosen_for_nothing: [(Ring.choose, "if not left:", "if False:")],
    everybody_is_found: [
        (Ring.choose, "(start + step) % len(self._turns)", "min(start + step, len(self._turns) - 1)")
    ],
    turns.test_a_new_weight_counts_from_the_next_claim_on: [
        (Ring.learn, "self._total += weight - self._weights[tenant_id]", "pass"),
        (Ring.learn, "if tenant_id in self:", "if tenant_id in self._weights:"),
        (Ring.learn, "self._weights[tenant_id] = weight", "self._weights.setdefault(tenant_id, weight)"),
        (Ring._leave, "self._total -= self._weights[tenant_id]", "pass"),
    ],
    turns.test_claimers_do_not_walk_in_step: [(Ring.choose, "random.choice(self._turns)", "0")],
    # proofs
    proofs.test_the_first_proof_copies_the_marks_of_what_was_touched: [
        (Ring.prove, "for pair in self.touched}", "for pair in self.marks}"),
        (Ring.prove, "self.touched = set()", "pass"),
    ],
    proofs.test_copied_marks_are_floors_after_the_next_proof: [
        (Ring.prove, "min(mark, self.marks[pair])", "self.marks[pair]"),
        (Ring.prove, "min(mark, self.marks[pair])", "self.floors[pair]"),
    ],
    a_mark_that_was_taken_back_is_the_floor: [(Ring.prove, "min(mark, self.marks[pair])", "mark")],
    proofs.test_a_pair_that_ran_dry_and_was_proven_is_forgotten: [
        (Ring.prove, "del self.marks[pair], self.floors[pair]", "pass"),
        (Ring.prove, "self._weights.pop(pair[0], None)", "pass"),
        (Ring.prove, "self.limited.discard(pair[0])", "pass"),
        (Ring.exhausted, "self._ready.pop(tenant_id, None)", "pass"),
    ],
    proofs.test_a_pair_that_was_touched_since_is_not_forgotten: [
        (Ring.prove, "pair in self.touched or ", "")
    ],
    proofs.test_a_tenant_that_is_away_is_remembered: [(Ring.prove, " and pair[0] not in self._away", "")],
    proofs.test_a_tenant_of_which_another_pair_is_ready_is_remembered: [
        (Ring.prove, "pair[0] not in self._ready and ", "")
    ],
    proofs.test_a_pair_of_a_tenant_that_is_passed_over_is_not_forgotten: [
        (Ring.prove, " or pair[1] in self._ready.get(pair[0], ())", "")
    ],
}
