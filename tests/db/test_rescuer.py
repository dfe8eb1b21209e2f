"""The rescuer acts only on what it has watched for a full lease."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from dispatch.rescuer import Rescuer
from jobs.models import QueueEntry
from tests.factories import claim, process, schedule

Connection = psycopg.Connection[Any]


class Time:
    """Boot time here and the database's, which go on together unless told otherwise."""

    def __init__(self, start: datetime) -> None:
        self.boot, self.now = 1000.0, start

    def pass_by(self, seconds: float, *, jump: float = 0.0) -> None:
        self.boot += seconds
        self.now += timedelta(seconds=seconds + jump)


@pytest.fixture
def time(here: Connection, monkeypatch: pytest.MonkeyPatch) -> Time:
    """With an orphan that waits to be rescued."""
    job = schedule()
    claim(here, job, process(here))
    here.execute("UPDATE jobs_process SET lease_expires_at = clock_timestamp()")
    made = Time(job.created_at)
    monkeypatch.setattr("dispatch.rescuer.boottime", lambda: made.boot)
    return made


def orphans() -> int:
    return QueueEntry.objects.filter(process_id__isnull=False).count()


def test_nothing_is_rescued_before_a_full_lease_was_watched(here: Connection, time: Time) -> None:
    rescuer = Rescuer()
    for _ in range(5):
        assert rescuer.run_once(here, time.now) == 0
        time.pass_by(rescuer.lease / 5.01)
    assert orphans() == 1
    time.pass_by(rescuer.lease / 5)
    assert rescuer.run_once(here, time.now) == 1
    assert orphans() == 0


def watched(rescuer: Rescuer, here: Connection, time: Time) -> None:
    for _ in range(4):
        rescuer._watched(time.now)
        time.pass_by(rescuer.lease / 3)


def test_a_gap_in_the_watch_begins_it_anew(here: Connection, time: Time) -> None:
    rescuer = Rescuer()
    watched(rescuer, here, time)
    time.pass_by(rescuer.lease)
    assert rescuer.run_once(here, time.now) == 0


@pytest.mark.parametrize("jump", [-5.0, 5.0])
def test_a_jump_of_the_databases_clock_begins_it_anew(here: Connection, time: Time, jump: float) -> None:
    rescuer = Rescuer()
    watched(rescuer, here, time)
    time.pass_by(0.1, jump=jump)
    assert rescuer.run_once(here, time.now) == 0


def test_a_lost_contact_begins_it_anew(here: Connection, time: Time) -> None:
    rescuer = Rescuer()
    watched(rescuer, here, time)
    rescuer.interrupted()
    assert rescuer.run_once(here, time.now) == 0


def test_an_uninterrupted_watch_rescues_at_once(here: Connection, time: Time) -> None:
    rescuer = Rescuer()
    watched(rescuer, here, time)
    assert rescuer.run_once(here, time.now) == 1
