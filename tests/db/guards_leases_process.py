"""What each guard of processes, fetch and rescue prevents: a small check that fails without it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, cast

import psycopg
import pytest

from jobs import arrays, retry
from jobs.leases import end, fetch, register, renew, rescue, rescue_process
from jobs.leases.rescue import _failed
from jobs.models import Attempt, Job, Process, QueueEntry
from jobs.results import Claim
from tests.db import test_autopsy, test_rescue
from tests.db.test_rescue import blame, entry_of, held, lose
from tests.factories import come_due, process, schedule, server_time, take
from tests.mutating import Mutants
from tests.statements import Noting

Connection = psycopg.Connection[Any]
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def _lease(process_id: int) -> datetime:
    return Process.objects.get(pk=process_id).lease_expires_at


def _taken(here: Connection, *jobs: Job) -> list[Claim]:
    """Claims of all that is due, in the order of these jobs, without what was asked for."""
    come_due(here)
    taken = {each.held.job_id: each for each in take(here, "test.noop", process(here))}
    return [taken[job.id]._replace(payload=None) for job in jobs]


def a_lease_is_as_long_as_was_asked(here: Connection) -> None:
    mine = process(here, lease=DAY)
    assert _lease(mine) > server_time(here) + HOUR
    renew(here, [mine], lease=2 * DAY)
    assert _lease(mine) > server_time(here) + DAY


def an_expired_lease_is_not_renewed(here: Connection) -> None:
    mine = process(here)
    lose(here, mine)
    assert renew(here, [mine]) == set()


def a_renewal_leaves_the_leases_of_others_alone(here: Connection) -> None:
    mine, other = process(here), process(here)
    before = _lease(other)
    assert renew(here, [mine]) == {mine}
    assert _lease(other) == before


def what_an_ended_process_held_is_orphaned_at_once(here: Connection) -> None:
    mine = held(here)
    end(here, [mine.process_id])
    assert set(rescue(here).fates) == {mine.job_id}


def an_end_prolongs_no_lease(here: Connection) -> None:
    mine = process(here)
    lose(here, mine)
    before = _lease(mine)
    end(here, [mine])
    assert _lease(mine) == before


def a_process_ends_once(here: Connection) -> None:
    mine = process(here)
    end(here, [mine])
    before = Process.objects.values().get()
    end(here, [mine])
    assert Process.objects.values().get() == before


def an_end_is_nobody_elses(here: Connection) -> None:
    mine, other = process(here), process(here)
    end(here, [mine])
    assert renew(here, [other]) == {other}


def what_has_no_row_is_told_from_the_rest(here: Connection) -> None:
    gone, there = _taken(here, schedule(), schedule())
    here.execute("DELETE FROM jobs_job WHERE id = %s", [gone.held.job_id])
    claims, missing = fetch(here, [gone, there])
    assert [each.held for each in claims] == [there.held]
    assert missing == [gone]


def each_day_is_fetched_from_its_own_leaf(here: Connection) -> None:
    taken = _taken(here, schedule(delay=-DAY), schedule())
    claims, missing = fetch(here, taken)
    assert [each.held for each in claims] == [each.held for each in taken]
    assert [each.payload for each in claims] == ["{}", "{}"]
    assert not missing


def what_a_claim_has_brought_is_not_fetched(here: Connection) -> None:
    brought, lacking = _taken(here, schedule(), schedule())
    brought = brought._replace(payload='{"mine": 1}')
    noting = Noting(here)
    assert fetch(cast(Connection, noting), [brought]) == ([brought], [])
    assert noting.sent == []
    claims, _ = fetch(cast(Connection, noting), [brought, lacking])
    assert [each.payload for each in claims] == [brought.payload, "{}"]
    assert noting.given["payloads"]["ids"].data == arrays.uuids([lacking.held.job_id]).data


def a_lost_claim_counts_one_crash_and_no_attempt(here: Connection) -> None:
    mine = held(here)
    QueueEntry.objects.update(crashes=1)
    lose(here, mine.process_id)
    rescue(here)
    assert (entry_of(mine).attempt, entry_of(mine).crashes) == (0, 2)


def a_rescue_obeys_its_limit(here: Connection) -> None:
    for _ in range(2):
        lose(here, held(here).process_id)
    assert len(rescue(here, limit=1).fates) == 1


def a_rescued_attempt_waits_as_its_type_says(here: Connection) -> None:
    """So late an attempt would wait for hours by default."""
    mine = held(here, job_type="test.flaky")
    QueueEntry.objects.update(attempt=15)
    rescue_process(here, mine.process_id, blame(mine.job_id))
    assert entry_of(mine).run_at <= server_time(here) + timedelta(milliseconds=50)


def the_later_the_attempt_the_longer_it_waits(here: Connection) -> None:
    mine = held(here)
    QueueEntry.objects.update(attempt=15)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry._RANDOM, "random", lambda: 1.0)
        rescue_process(here, mine.process_id, blame(mine.job_id))
    assert entry_of(mine).run_at > server_time(here) + HOUR


def an_attempt_of_an_unknown_type_is_rescued(here: Connection) -> None:
    mine = held(here)
    QueueEntry.objects.update(job_type="nobody.knows")
    rescue_process(here, mine.process_id, blame(mine.job_id))
    assert Attempt.objects.filter(job_id=mine.job_id).exists()


ID = "id = ANY(%s)"
ENDING = "least(lease_expires_at, clock_timestamp())"

MUTANTS: Mutants = {
    a_lease_is_as_long_as_was_asked: [
        (register, "lease or conf().lease", "conf().lease"),
        (renew, "lease or conf().lease", "conf().lease"),
    ],
    an_expired_lease_is_not_renewed: [
        (renew, " AND mine.lease_expires_at > (SELECT max(clock_timestamp()) FROM mine) ", " ")
    ],
    a_renewal_leaves_the_leases_of_others_alone: [
        (renew, f"{ID} ORDER", "%s::bigint[] IS NOT NULL ORDER"),
        (renew, "jobs_process.id = mine.id ", "true "),
    ],
    what_an_ended_process_held_is_orphaned_at_once: [(end, ENDING, "lease_expires_at")],
    an_end_prolongs_no_lease: [(end, ENDING, "clock_timestamp()")],
    a_process_ends_once: [(end, " AND ended_at IS NULL", "")],
    an_end_is_nobody_elses: [(end, ID, "%s::bigint[] IS NOT NULL")],
    each_day_is_fetched_from_its_own_leaf: [
        (fetch, "day_of_id(claim.held.job_id)", "day_of_id(claims[0].held.job_id)")
    ],
    what_a_claim_has_brought_is_not_fetched: [
        (fetch, "if claim.payload is None:", "if True:"),
    ],
    what_has_no_row_is_told_from_the_rest: [
        (fetch, "(missing if claim.payload is None else full)", "full"),
        (fetch, "(missing if claim.payload is None else full)", "missing"),
    ],
    a_lost_claim_counts_one_crash_and_no_attempt: [
        (rescue, " >= SUSPECT", ""),
        (rescue, "Released(crashed=True)", "Released()"),
    ],
    a_rescue_obeys_its_limit: [(rescue, '"limit": limit', '"limit": BATCH')],
    test_rescue.test_an_attempt_that_was_the_last_counts_as_run: [
        (rescue, "held.attempt >= held.max_attempts or ", ""),
        (rescue, "held.attempt >=", "held.attempt >"),
        (rescue, "error, crashed=True", "error, crashed=False"),
    ],
    test_rescue.test_a_job_that_takes_its_host_down_three_times_fails: [
        (rescue, " or held.crashes >= SUSPECT", ""),
        (rescue, ">= SUSPECT", "> SUSPECT"),
    ],
    test_autopsy.test_of_a_dead_process_the_guilty_count_and_crash_the_ended_count_and_the_rest_goes_back: [
        (rescue_process, "if held.job_id in autopsy.guilty:", "if False:"),
        (rescue_process, "if held.job_id in autopsy.ended:", "if False:"),
        (rescue_process, "crashed=autopsy.crashed", "crashed=False"),
        (rescue_process, "unwritten, crashed=False", "unwritten, crashed=True"),
        (rescue_process, "Released()", "Released(crashed=True)"),
    ],
    test_autopsy.test_a_process_killed_at_a_hard_timeout_crashes_nobody: [
        (rescue_process, "crashed=autopsy.crashed", "crashed=True")
    ],
    a_rescued_attempt_waits_as_its_type_says: [
        (_failed, "known.backoff if known else default_backoff()", "default_backoff()")
    ],
    the_later_the_attempt_the_longer_it_waits: [(_failed, "delay(held.attempt)", "delay(1)")],
    an_attempt_of_an_unknown_type_is_rescued: [(_failed, " if known else default_backoff()", "")],
}
