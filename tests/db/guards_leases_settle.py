"""What each guard of settles prevents: a small check that fails without it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg

from jobs.leases import fate_of, settle
from jobs.leases.settle import _by_day, _decide, _end, _fenced, _write, _written
from jobs.models import Job, Outcome, QueueEntry
from jobs.results import Completed, Failed, Held, Released, Result, Settlement, Snoozed
from jobs.states import JobState
from tests.db import test_settle, test_settle_waits
from tests.db import test_settle_two_leases as two
from tests.db.test_settle import end, held
from tests.factories import ERROR, claim, failed, process, schedule, server_time
from tests.mutating import Check, Mutants
from tests.schema import guards_settle

Connection = psycopg.Connection[Any]
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def _settle(here: Connection, *results: tuple[Held, Result]) -> set[Any]:
    """Settle these in one batch; the jobs of which something was written."""
    return set(settle(here, [Settlement(mine, result, None) for mine, result in results]).fates)


def _flagged(here: Connection) -> Held:
    mine = held(here)
    Job.objects.filter(pk=mine.job_id).cancel()
    return mine


def _is_cancelled(here: Connection, result: Result) -> Outcome:
    end(here, _flagged(here), result)
    outcome: Outcome = Outcome.objects.get()
    assert outcome.state == JobState.CANCELLED
    return outcome


def a_cancel_decides_over_a_failure(here: Connection) -> None:
    _is_cancelled(here, failed())


def a_cancel_decides_over_a_release(here: Connection) -> None:
    _is_cancelled(here, Released())


def a_cancel_decides_over_a_snooze(here: Connection) -> None:
    _is_cancelled(here, Snoozed(HOUR))


def a_cancelled_attempt_is_blamed_for_its_crash(here: Connection) -> None:
    assert _is_cancelled(here, Failed(ERROR, HOUR, crashed=True)).crashes == 1


def a_cancelled_failure_is_written_beside_another_end(here: Connection) -> None:
    flagged, other = _flagged(here), held(here)
    assert len(_settle(here, (flagged, failed()), (other, failed(final=True)))) == 2


def a_cancel_decides_beside_completions(here: Connection) -> None:
    completed, flagged = held(here), _flagged(here)
    _settle(here, (completed, Completed()), (flagged, Snoozed(HOUR)))
    assert Outcome.objects.get(job_id=flagged.job_id).state == JobState.CANCELLED


def what_was_completed_is_not_cancelled(here: Connection) -> None:
    """Beside a failure, so that its flag is read."""
    flagged, other = _flagged(here), held(here)
    _settle(here, (flagged, Completed()), (other, failed()))
    assert Outcome.objects.get(job_id=flagged.job_id).state == JobState.COMPLETED


def results_and_notes_are_kept(here: Connection) -> None:
    mine = [held(here) for _ in range(4)]
    results = [(None, None), ("1", None), (None, "a"), ("2", "b")]
    batch = [(each, Completed(*result)) for each, result in zip(mine, results, strict=True)]
    for some in (batch[1:2], batch[2:3], batch[:1] + batch[3:]):
        _settle(here, *some)
    rows = [Outcome.objects.get(job_id=each.job_id) for each in mine]
    assert [(row.result, row.error) for row in rows] == [(None, None), (1, None), (None, "a"), (2, "b")]


def when_it_started_is_kept(here: Connection) -> None:
    test_settle.test_the_outcome_says_how_it_ended(here)
    mine, started = held(here), server_time(here)
    settle(here, [Settlement(mine, Completed(), started)])
    assert Outcome.objects.get(job_id=mine.job_id).started_at == started


def a_failure_beside_a_completion_fails(here: Connection) -> None:
    completed, lost = held(here), held(here)
    _settle(here, (completed, Completed()), (lost, failed(final=True)))
    assert Outcome.objects.get(job_id=lost.job_id).state == JobState.FAILED


def what_was_put_back_is_not_fenced(here: Connection) -> None:
    mine, lost = held(here), held(here)._replace(lease_token=uuid4())
    settled = settle(here, [Settlement(each, failed(), None) for each in (mine, lost)])
    assert settled.fenced == {lost.job_id}


def _of_two_leases(test: Callable[[Connection, two.Leases], None]) -> Check:
    def check(here: Connection) -> None:
        job, mine = schedule(), process(here)
        stale = claim(here, job, mine).held
        QueueEntry.objects.update(lease_token=None, process_id=None, attempt=0)
        test(here, two.Leases(stale, claim(here, job, mine).held))

    check.__name__ = test.__name__
    return check


def a_final_error_leaves_no_attempts(here: Connection) -> None:
    end(here, held(here), failed(final=True))
    assert Outcome.objects.get().state == JobState.FAILED


def a_failure_is_no_crash(here: Connection) -> None:
    mine = held(here)._replace(crashes=2)
    end(here, mine, failed())
    assert QueueEntry.objects.get().crashes == 0


def a_failed_attempt_counts(here: Connection) -> None:
    end(here, held(here), failed())
    assert QueueEntry.objects.get().attempt == 1


def a_release_counts_no_attempt(here: Connection) -> None:
    end(here, held(here), Released())
    assert QueueEntry.objects.get().attempt == 0


def completions_are_one_statement_per_day(here: Connection) -> None:
    for days, result, statements in (
        (1, Completed(), ["complete"]),
        (2, Completed(), ["lock_claims", "complete", "complete"]),
    ):
        test_settle_waits.test_completions_alone_are_one_statement_per_day_and_one_that_locks_those_of_several(
            here, days, result, statements
        )
        here.execute("DELETE FROM jobs_outcome WHERE due_at > now() - interval '3 days'")


def a_stolen_lease_has_no_fate(here: Connection) -> None:
    mine = held(here)
    assert _settle(here, (mine._replace(lease_token=uuid4()), Completed())) == set()


def a_stolen_lease_takes_nothing_from_its_batch(here: Connection) -> None:
    mine, lost = held(here), held(here)
    assert _settle(here, (lost._replace(lease_token=uuid4()), failed()), (mine, failed())) == {mine.job_id}


def an_earlier_settle_is_found_on_each_day(here: Connection) -> None:
    batch = [Settlement(held(here, delay=-n * DAY), Completed(), None) for n in (1, 0)]
    settle(here, batch)
    assert not settle(here, batch).fenced


stale_behind = _of_two_leases(two.test_a_stale_failure_behind_a_fresh_completion_writes_nothing)
stale_before = _of_two_leases(two.test_a_stale_failure_before_a_fresh_completion_writes_nothing)
settled_twice = _of_two_leases(two.test_a_lease_that_is_settled_twice_in_one_batch_ends_once)

CANCELLED = "Ended(JobState.CANCELLED) if cancelled else "
CRASHED_TOO_OFTEN = " or (crashed and held.crashes + 1 >= conf().max_crashes)"
DAY_OF = "day_of_id(settlement.held.job_id)"

MUTANTS: Mutants = {
    a_cancel_decides_over_a_failure: [
        (settle, "all(type(s.result) is Completed for s in batch) and ", ""),
        (fate_of, "if cancelled:", "if False:"),
        (_decide, "flags[s.held.job_id]", "False"),
    ],
    a_cancel_decides_over_a_release: [(fate_of, f"{CANCELLED}PutBack(None", "PutBack(None")],
    a_cancel_decides_over_a_snooze: [(fate_of, f'{CANCELLED}PutBack("snooze"', 'PutBack("snooze"')],
    a_cancel_decides_beside_completions: [(settle, "if all(", "if any(")],
    a_cancelled_attempt_is_blamed_for_its_crash: [(fate_of, ", crashes=", ", crashes=0 and ")],
    what_was_completed_is_not_cancelled: [
        (fate_of, "return COMPLETED if", "return Ended(JobState.CANCELLED) if cancelled else COMPLETED if")
    ],
    results_and_notes_are_kept: [
        (fate_of, "value is None and note is None", "True"),
        (fate_of, "value is None and note is None", "value is None"),
        (fate_of, "value is None and note is None", "note is None"),
        (_end, "lean = all(", "lean = any("),
        (_end, '"results": [fate.result for', '"results": [None for'),
    ],
    when_it_started_is_kept: [(_end, "[s.started_at for", "[None for")],
    a_failure_beside_a_completion_fails: [
        (_end, "fate is COMPLETED for fate in fates", "True for fate in fates")
    ],
    a_final_error_leaves_no_attempts: [(fate_of, "final or ", "")],
    a_failure_is_no_crash: [(fate_of, "crashed and ", "")],
    a_failed_attempt_counts: [
        (fate_of, "(result.after), 0", "(result.after), 1"),
    ],
    a_release_counts_no_attempt: [(fate_of, "None, None, 1", "None, None, 0")],
    test_settle_waits.test_snoozes_use_up_no_attempts: [(fate_of, "(delay), 1", "(delay), 0")],
    test_settle.test_the_last_attempt_fails_for_good: [
        (fate_of, " or used_up", ""),
        (fate_of, "held.attempt >=", "held.attempt >"),
    ],
    test_settle_waits.test_the_third_crash_fails_the_job_whatever_attempts_are_left: [
        (fate_of, CRASHED_TOO_OFTEN, ""),
        (fate_of, "held.crashes + 1", "held.crashes"),
        (fate_of, "held.crashes + 1", "held.crashes + 2"),
        (fate_of, "error.fingerprint, int(crashed)", "error.fingerprint, 0"),
    ],
    guards_settle.a_crash_is_counted: [(fate_of, "(result.after), 0, int(crashed)", "(result.after), 0, 0")],
    test_settle_waits.test_an_entry_whose_supervisor_was_lost_carries_the_crash_but_not_the_attempt: [
        (fate_of, "None, None, 1, int(crashed)", "None, None, 1, 0")
    ],
    test_settle.test_a_failed_outcome_has_a_short_error_and_its_fingerprint: [
        (fate_of, "text[:500]", "text")
    ],
    test_settle.test_an_attempt_that_did_not_end_well_is_recorded: [
        (_write, "if isinstance(settlement.result, Failed):", "if False:")
    ],
    test_settle_waits.test_a_mixed_batch_over_several_days_settles_each_by_itself: [
        (_write, DAY_OF, "day_of_id(decided[0][0].held.job_id)"),
    ],
    completions_are_one_statement_per_day: [
        (_write, "if back:", "if True:"),
        (_end, "lean = all(fate is COMPLETED for fate in fates)", "lean = False"),
        (settle, "if all(type(s.result) is Completed for s in batch)", "if False"),
        (settle, "len(days := _by_day(batch)) == 1", "(days := _by_day(batch))"),
    ],
    what_was_put_back_is_not_fenced: [(settle, " if s.held.job_id not in settled.fates", "")],
    a_stolen_lease_has_no_fate: [
        (_written, "if cursor.rowcount == len(some):", "if True:"),
        (_written, "for s, fate in some if s.held.job_id in found}", "for s, fate in some}"),
    ],
    stale_behind: [(settle, "if len(jobs) < len(batch):", "if False:")],
    stale_before: [(settle, "s is not jobs[s.held.job_id]", "s is jobs[s.held.job_id]")],
    settled_twice: [(settle, "if len(jobs) < len(batch):", "if False:")],
    a_stolen_lease_takes_nothing_from_its_batch: [(_decide, " if s.held.job_id in flags", "")],
    guards_settle.a_stolen_lease_is_called_fenced: [(settle, "settled.fenced = ", "")],
    test_settle.test_a_settle_that_is_sent_again_after_a_lost_reply_is_not_called_fenced: [
        (_fenced, "fenced -= ", "")
    ],
    an_earlier_settle_is_found_on_each_day: [(_by_day, DAY_OF, f"min(days, default={DAY_OF})")],
}
