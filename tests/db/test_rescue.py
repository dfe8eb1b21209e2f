from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from jobs.leases import Autopsy, Claimer, end, rescue, rescue_process
from jobs.models import Attempt, Job, Outcome, QueueEntry
from jobs.registry import registry
from jobs.results import Held
from jobs.states import JobState
from tests.factories import ERROR, claim, come_due, process, schedule

Connection = psycopg.Connection[Any]


def held(here: Connection, **options: Any) -> Held:
    return claim(here, schedule(**options), process(here)).held


def lose(here: Connection, process_id: int, how: str = "expired") -> None:
    if how == "expired":
        here.execute(
            "UPDATE jobs_process SET lease_expires_at = clock_timestamp() WHERE id = %s", [process_id]
        )
    elif how == "ended":
        end(here, [process_id])
    else:
        here.execute("DELETE FROM jobs_process WHERE id = %s", [process_id])


def blame(*guilty: UUID, crashed: bool = True) -> Autopsy:
    return Autopsy(error=ERROR, guilty=frozenset(guilty), crashed=crashed)


def entry_of(mine: Held) -> QueueEntry:
    return QueueEntry.objects.get(job_id=mine.job_id)


@pytest.mark.parametrize("how", ["expired", "ended", "deleted"])
def test_what_a_lost_process_held_may_run_again_uncounted(here: Connection, how: str) -> None:
    mine, other = held(here), held(here)
    lose(here, mine.process_id, how)
    assert set(rescue(here).fates) == {mine.job_id}
    entry = entry_of(mine)
    assert (entry.lease_token, entry.process_id, entry.attempt, entry.crashes) == (None, None, 0, 1)
    assert entry_of(other).lease_token == other.lease_token


def test_the_living_are_left_alone(here: Connection) -> None:
    held(here)
    schedule()
    assert rescue(here).fates == {}


def test_an_attempt_that_was_the_last_counts_as_run(here: Connection) -> None:
    mine = held(here, max_attempts=1)
    lose(here, mine.process_id)
    rescue(here)
    outcome = Outcome.objects.get(job_id=mine.job_id)
    assert (outcome.state, outcome.attempt, outcome.crashes) == ("failed", 1, 1)
    assert Attempt.objects.get(job_id=mine.job_id).error_class == "WorkerLost"


def test_a_requested_cancel_is_obeyed_by_the_rescue(here: Connection) -> None:
    mine = held(here)
    Job.objects.filter(pk=mine.job_id).cancel()
    lose(here, mine.process_id)
    rescue(here)
    assert Job.objects.get(pk=mine.job_id).state is JobState.CANCELLED


def test_a_job_that_takes_its_host_down_three_times_fails(here: Connection) -> None:
    job = schedule(max_attempts=20)
    for crashes in range(3):
        come_due(here)
        claimer = Claimer(job.queue, process(here), registry.names(), suspects=crashes >= 2)
        (taken,) = claimer.claim(here, 1, 1)
        lose(here, taken.held.process_id)
        rescue(here)
    assert job.state is JobState.FAILED
    assert Outcome.objects.get(job_id=job.id).crashes == 3


def test_a_rescue_takes_so_many_at_once_and_the_rest_next_time(here: Connection) -> None:
    jobs = [schedule() for _ in range(5)]
    mine = claim(here, jobs[0], process(here)).held
    lose(here, mine.process_id)
    assert [len(rescue(here, limit=2).fates) for _ in range(4)] == [2, 2, 1, 0]


def test_a_supervisor_counts_what_had_started_and_releases_the_rest(here: Connection) -> None:
    jobs = [schedule() for _ in range(3)]
    mine = claim(here, jobs[0], process(here)).held
    settled = rescue_process(here, mine.process_id, blame(jobs[1].id))
    assert set(settled.fates) == {job.id for job in jobs}
    rows = {entry.job_id: (entry.attempt, entry.crashes) for entry in QueueEntry.objects.all()}
    assert rows == {jobs[0].id: (0, 0), jobs[1].id: (1, 1), jobs[2].id: (0, 0)}
    assert [attempt.job_id for attempt in Attempt.objects.all()] == [jobs[1].id]


def test_killed_for_a_late_job_only_that_one_is_counted_and_not_as_a_crash(here: Connection) -> None:
    jobs = [schedule() for _ in range(3)]
    mine = claim(here, jobs[0], process(here)).held
    rescue_process(here, mine.process_id, blame(jobs[2].id, crashed=False))
    rows = {entry.job_id: (entry.attempt, entry.crashes) for entry in QueueEntry.objects.all()}
    assert rows == {jobs[0].id: (0, 0), jobs[1].id: (0, 0), jobs[2].id: (1, 0)}


def test_a_body_that_had_returned_is_counted_and_not_blamed(here: Connection) -> None:
    job = schedule()
    mine = claim(here, job, process(here)).held
    rescue_process(here, mine.process_id, Autopsy(error=ERROR, ended=frozenset({job.id})))
    entry = entry_of(mine)
    assert (entry.attempt, entry.crashes, entry.waits) == (1, 0, "retry")
    assert Attempt.objects.get(job_id=job.id).fingerprint == "unwritten"


def test_a_supervisor_rescues_nothing_of_another_process(here: Connection) -> None:
    mine, other = held(here), held(here)
    rescue_process(here, mine.process_id, blame(mine.job_id, other.job_id))
    assert entry_of(other).lease_token == other.lease_token


def test_a_rescued_attempt_waits_by_its_types_back_off(here: Connection) -> None:
    job = schedule("test.flaky", {"failures": 9})
    mine = claim(here, job, process(here)).held
    rescue_process(here, mine.process_id, blame(job.id))
    entry = entry_of(mine)
    assert entry.waits == "retry"
    assert timedelta() < entry.run_at - mine.due_at < timedelta(minutes=1)
