"""What each guard of looks prevents: a test that fails without it."""

from __future__ import annotations

from jobs.leases.looks import Line, Looks
from tests.mutating import Mutants
from tests.unit import test_looks as looks
from tests.unit import test_looks_ahead as ahead
from tests.unit import test_looks_proofs as proofs


def what_must_start_at_once_is_not_claimed_ahead() -> None:
    for flag, limited in ((True, False), (False, True)):
        ahead.test_what_must_start_at_once_is_not_claimed_ahead(flag, limited)


SINCE = "self._since - SPARE if wide else self._now - BACK"
SENT = "touched | line.copied.keys()"

MUTANTS: Mutants = {
    # when
    looks.test_a_look_is_due_in_a_moment_and_can_wait_for_what_is_known: [
        (Looks.due, "PATIENCE if busy else 0.0", "0.0"),
        (Looks.due, "PATIENCE if busy else 0.0", "PATIENCE"),
    ],
    looks.test_a_wide_look_comes_each_second: [
        (Looks.look, "wide = begun >= self._wide_at", "wide = False"),
        (Looks.look, "wide = begun >= self._wide_at", "wide = True"),
    ],
    looks.test_nobody_sleeps_through_the_wide_look_that_follows_a_narrow_one: [
        (Looks.wide_in, "if self._was_wide else", "if True else"),
        (Looks.wide_in, "if self._was_wide else", "if False else"),
        (Looks.wide_in, "max(0.0, self._wide_at - time.monotonic())", "self._wide_at - time.monotonic()"),
        (Looks._narrow_or_wide, "self._was_wide = wide", "pass"),
        (Looks._hop, "self._sweep_at = begun + SWEEP", "pass"),
    ],
    looks.test_a_hint_makes_the_next_look_due_even_while_one_is_made: [
        (Looks.forget, 'self._next = float("-inf")', "pass"),
        (Looks.look, "if self._next == begun:", "if True:"),
    ],
    looks.test_a_look_that_takes_long_is_made_seldom: [
        (Looks.look, "max(EVERY, SHARE * (ended - begun))", "EVERY")
    ],
    looks.test_a_wide_look_that_takes_long_is_made_seldom: [
        (Looks.look, "max(WIDE, SHARE * (time.monotonic() - begun))", "WIDE")
    ],
    looks.test_a_hop_comes_once_a_minute_and_after_a_lost_connection: [
        (Looks.look, "if begun >= self._hop_at:", "if self._pending is None:"),
        (Looks.restart, "self._hop_at = self._next", "self._next"),
        (Looks.restart, "self._hop_at = self._next", "self._hop_at"),
    ],
    looks.test_a_hop_that_takes_long_is_made_seldom: [(Looks._hop, "max(HOP, SHARE * took)", "HOP")],
    proofs.test_sweeps_come_every_two_seconds_and_seldom_when_they_take_long: [
        (Looks._sweep, "max(SWEEP, SHARE * (time.monotonic() - begun))", "SWEEP"),
        (Looks.look, "if begun >= self._sweep_at:", "if True:"),
    ],
    looks.test_strangers_are_remembered_until_the_next_hop: [
        (Looks._see_all, "line.strangers = False", "pass"),
        (Looks._see, "line.strangers |= flag", "pass"),
        (
            Looks._see,
            "self.lines[queue].unknown = self.lines[queue].strangers = True",
            "self.lines[queue].unknown = True",
        ),
    ],
    looks.test_a_leap_goes_to_the_next_that_is_known_and_is_no_look_at_other_queues: [
        (Looks.leap, "[line.queue]", "list(self.lines)"),
        (Looks.leap, "first - INSTANT", "first"),
        (Looks.leap, "found.get(pair)", "first"),
        (Looks.leap, "self._now = before", "pass"),
    ],
    looks.test_a_leap_that_takes_long_is_made_seldom: [
        (Looks.leap, "if begun < self._leap_at:", "if False:"),
        (Looks.leap, "SHARE * (time.monotonic() - begun)", "0"),
    ],
    # how far back
    looks.test_a_fresh_start_hops_and_looks_widely: [
        (Looks._hop, "self._narrow_or_wide(connection, True)", "self._narrow_or_wide(connection, False)"),
        (Looks._narrow_or_wide, SINCE, "self._since if wide else self._now - BACK"),
        (Looks._see, "run_at, job_id)", "run_at)"),
    ],
    looks.test_a_narrow_look_reaches_back_a_moment_before_the_last_one: [
        (Looks._narrow_or_wide, SINCE, "self._since - SPARE if wide else self._now"),
        (Looks._narrow_or_wide, SINCE, "self._since - SPARE"),
    ],
    proofs.test_wide_looks_reach_back_to_the_start_while_who_was_open_then_is_open: [
        (Looks._narrow_or_wide, SINCE, "self._now - BACK"),
        (Looks._prove, "self._xmin >= next_xid", "self._xmin < next_xid"),
        (Looks._prove, "self._xmin >= next_xid", "True"),
        (Looks._restart_proof, "(self._next_xid, ", "(self._xmin, "),
    ],
    proofs.test_wide_looks_reach_back_to_the_last_moment_after_which_all_has_ended: [
        (Looks.look, "self._prove()", "pass"),
        (Looks._prove, "self._xmin >= next_xid", "self._xmin > next_xid"),
        (Looks._prove, "= moment, number", "= self._now, number"),
        (Looks._prove, "self._restart_proof()", "pass"),
        (Looks._restart_proof, "self._now, self.number)", "self._since, self.number)"),
    ],
    proofs.test_a_later_hop_proves_nothing: [(Looks._hop, "if self._pending is None:", "if True:")],
    proofs.test_what_was_learnt_before_a_look_is_proven_with_it: [
        (Looks.look, "self.number += 1", "pass"),
        (Looks._prove, "= moment, number", "= moment, self.number"),
    ],
    # what was left behind
    proofs.test_a_start_is_hopped_again_until_all_that_was_open_then_has_ended: [
        (Looks._sweep, "if not self._started:", "if False:"),
        (Looks._sweep, "self._xmin >= self._copied_at", "True"),
        (Looks._sweep, "self._started = True", "pass"),
        (Looks._hop, "self._copied_at = self._next_xid", "pass"),
    ],
    proofs.test_a_sweep_probes_what_was_touched_from_its_floor: [
        (Looks.look, "if begun >= self._sweep_at:", "if False:"),
        (Looks._sweep, "line.ring.floors.get(pair, BEGINNING)", "line.ring.marks[pair]"),
        (Looks._sweep, "line.ring.floors.get(pair, BEGINNING)", "BEGINNING"),
        (Looks._sweep, SENT, "touched"),
    ],
    proofs.test_what_was_not_touched_is_not_swept: [
        (Looks._sweep, "line.ring.touched | line.copied.keys()", "line.ring.marks"),
        (Looks._sweep, "elif pairs:", "else:"),
    ],
    proofs.test_what_was_touched_is_swept_until_all_that_was_open_then_has_ended: [
        (Looks._sweep, "self._xmin >= self._copied_at", "self._xmin < self._copied_at"),
        (Looks._sweep, "line.copied = line.ring.prove(line.copied)", "line.ring.prove(line.copied)"),
    ],
    proofs.test_what_is_touched_after_a_sweep_waits_for_the_proof_after_next: [
        (Looks._sweep, "self._copied_at = self._next_xid", "pass"),
        (Looks._sweep, "self._copied_at = self._next_xid", "self._copied_at = self._xmin"),
    ],
    # what is taken in
    looks.test_a_process_for_suspects_looks_for_them_alone: [
        (Looks._look, '"suspects": self.suspects', '"suspects": False')
    ],
    looks.test_the_clock_is_set_by_each_look: [(Looks._see, "self.clock.observe(moment)", "pass")],
    looks.test_an_unknown_type_counts_only_when_it_is_due: [
        (Looks._see, "line.unknown |= flag", "pass"),
        (Looks._see, "line.unknown |= flag", "line.unknown = flag"),
    ],
    looks.test_what_is_told_of_a_tenant_is_learnt: [
        (Looks._see, "weight, limited, run_at, job_id)", "weight, False, run_at, job_id)")
    ],
    ahead.test_what_is_coming_takes_a_turn_when_its_time_has_come: [
        (Looks._narrow_or_wide, "heapify(line.coming)", "pass"),
        (Looks._see, "if run_at > now:", "if False:"),
        (Line.arrive, "> now", ">= now"),
        (Line.arrive, "return True", "return False"),
    ],
    ahead.test_what_is_due_takes_its_turn_at_once_and_is_not_coming: [
        (Looks._see, "if run_at > now:", "if run_at >= now:")
    ],
    ahead.test_nobody_wakes_for_what_was_claimed_ahead: [
        (Line.took, "(e[1], e[4]) not in gone or e[0] == e[4]", "True"),
        (Line.took, "(e[1], e[4]) not in gone", "e[4] not in {run_at for _, run_at in gone}"),
        (Line.took, "(e[1], e[4]) not in gone", "e[1] not in {pair for pair, _ in gone}"),
    ],
    ahead.test_a_process_wakes_for_what_could_not_be_claimed_ahead_with_it: [
        (Line.took, " or e[0] == e[4]", "")
    ],
    ahead.test_each_look_tells_anew_what_is_coming: [(Looks._narrow_or_wide, "line.coming.clear()", "pass")],
    ahead.test_what_the_same_claim_reaches_is_let_in_with_it: [
        (Line.arrive, "now + GATHER * (REACH - 1) * self.ahead", "now"),
        (Line.arrive, "GATHER * ", ""),
    ],
    ahead.test_what_must_start_at_once_is_not_let_in_with_others: [
        (Line.arrive, "if now < claim_at == run_at:", "if False:"),
        (Line.arrive, "now < claim_at == run_at", "claim_at == run_at"),
        (Line.arrive, "heappush(self.coming, entry)", "pass"),
    ],
    ahead.test_an_entry_may_be_claimed_a_moment_ahead: [(Looks._see, "run_at - line.ahead", "run_at")],
    what_must_start_at_once_is_not_claimed_ahead: [
        (Looks._see, "flag or limited", "flag"),
        (Looks._see, "flag or limited", "limited"),
    ],
    ahead.test_there_may_be_more_than_a_look_tells: [
        (Looks._narrow_or_wide, "line.more = line.told == COMING", "line.more = True"),
        (Looks._narrow_or_wide, "line.more = line.told == COMING", "pass"),
    ],
    ahead.test_behind_all_that_is_known_a_process_wakes_to_look_for_more: [
        (Line.next_at.fget, "if not self.coming and self.more:", "if False:"),  # type: ignore[attr-defined]
        (Line.due_at.fget, "if not self.coming and self.more:", "if False:"),  # type: ignore[attr-defined]
        (Line.next_at.fget, "self.last_at - self.ahead", "self.last_at"),  # type: ignore[attr-defined]
        (Line.next_at.fget, "not self.coming and ", ""),  # type: ignore[attr-defined]
        (Line.due_at.fget, "not self.coming and ", ""),  # type: ignore[attr-defined]
    ],
    ahead.test_many_at_one_moment_are_a_crowd: [
        (Line.crowd.fget, "self.more and ", ""),  # type: ignore[attr-defined]
        (Line.crowd.fget, " < CROWD", " < 10**6 * CROWD"),  # type: ignore[attr-defined]
        (Line.crowd.fget, "bool(self.coming) and ", ""),  # type: ignore[attr-defined]
        (Looks._see, "line.told, line.last_at = line.told + 1, run_at", "line.told = line.told + 1"),
    ],
}
