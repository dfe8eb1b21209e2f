from __future__ import annotations

from typing import Any

import psycopg
import pytest

from jobs.leases import Autopsy, rescue_process
from jobs.models import Attempt, QueueEntry
from jobs.states import JobState
from tests.factories import ERROR, claim, process, schedule

pytestmark = pytest.mark.django_db

Connection = psycopg.Connection[Any]


def test_of_a_dead_process_the_guilty_count_and_crash_the_ended_count_and_the_rest_goes_back(
    here: Connection,
) -> None:
    dead = process(here)
    guilty, ended, waiting = (claim(here, schedule(queue=name), dead).held for name in ("a", "b", "c"))
    autopsy = Autopsy(error=ERROR, guilty=frozenset([guilty.job_id]), ended=frozenset([ended.job_id]))
    rescue_process(here, dead, autopsy)
    entries = {
        entry.job_id: (entry.attempt, entry.crashes, entry.waits) for entry in QueueEntry.objects.all()
    }
    assert entries == {
        guilty.job_id: (1, 1, "retry"),
        ended.job_id: (1, 0, "retry"),
        waiting.job_id: (0, 0, None),
    }
    assert {a.job_id for a in Attempt.objects.all()} == {guilty.job_id, ended.job_id}


def test_a_body_that_had_ended_on_its_last_attempt_fails_visibly(here: Connection) -> None:
    dead = process(here)
    job = schedule(max_attempts=1)
    held = claim(here, job, dead).held
    rescue_process(here, dead, Autopsy(error=ERROR, ended=frozenset([held.job_id])))
    assert job.state == JobState.FAILED


def test_a_process_killed_at_a_hard_timeout_crashes_nobody(here: Connection) -> None:
    dead = process(here)
    held = claim(here, schedule(), dead).held
    rescue_process(here, dead, Autopsy(error=ERROR, guilty=frozenset([held.job_id]), crashed=False))
    assert QueueEntry.objects.get().crashes == 0
    assert QueueEntry.objects.get().attempt == 1
