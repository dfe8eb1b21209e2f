"""What each guard of settles and rescues prevents: a small check that fails without it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg

from jobs.leases import Autopsy, rescue, rescue_process, settle
from jobs.models import Outcome, QueueEntry, UniqueKey
from jobs.results import Completed, Failed, Released, Settlement
from tests.factories import ERROR, claim, finish, process, schedule

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)


LEAN, FULL = Completed(), Completed('"a result"')
"""By which statement they are written: `complete` or `end`."""


def a_stolen_lease_completes_nothing(here: Connection) -> None:
    for result in (LEAN, FULL):
        mine = claim(here, schedule(), process(here)).held
        settle(here, [Settlement(mine._replace(lease_token=uuid4()), result, None)])
        assert not Outcome.objects.exists()


def a_stolen_lease_puts_nothing_back(here: Connection) -> None:
    mine = claim(here, schedule(), process(here)).held
    settle(here, [Settlement(mine._replace(lease_token=uuid4()), Released(), None)])
    assert QueueEntry.objects.get().lease_token == mine.lease_token


def a_stolen_lease_is_called_fenced(here: Connection) -> None:
    mine = claim(here, schedule(), process(here)).held
    finish_as = Settlement(mine, Completed(), None)
    settle(here, [finish_as])
    stolen = finish_as._replace(held=mine._replace(lease_token=uuid4()))
    assert settle(here, [stolen]).fenced == {mine.job_id}


def a_key_for_a_period_outlives_its_job(here: Connection) -> None:
    for result in (LEAN, FULL):
        mine = claim(here, schedule(unique_key=str(result), unique_for=HOUR), process(here))
        finish(here, mine, result)
    assert UniqueKey.objects.count() == 2


def a_key_until_done_goes_with_its_job(here: Connection) -> None:
    schedule(unique_key="other")
    for result in (LEAN, FULL):
        mine = claim(here, schedule("test.echo", unique_key="k"), process(here))
        finish(here, mine, result)
        assert [row.key for row in UniqueKey.objects.all()] == ["other"]


def what_has_ended_waits_no_more(here: Connection) -> None:
    schedule("test.echo")
    for result in (LEAN, FULL):
        finish(here, claim(here, schedule(), process(here)), result)
        assert [entry.job_type for entry in QueueEntry.objects.all()] == ["test.echo"]


def the_living_are_not_rescued(here: Connection) -> None:
    claim(here, schedule(), process(here))
    assert not rescue(here).fates


def what_a_deleted_process_held_is_rescued(here: Connection) -> None:
    claim(here, schedule(), process(here))
    here.execute("DELETE FROM jobs_process")
    assert rescue(here).fates


def a_supervisor_rescues_its_own_alone(here: Connection) -> None:
    claim(here, schedule(), process(here))
    assert not rescue_process(here, process(here), Autopsy(error=ERROR)).fates


def a_crash_is_counted(here: Connection) -> None:
    finish(here, claim(here, schedule(), process(here)), Failed(ERROR, HOUR, crashed=True))
    assert QueueEntry.objects.get().crashes == 1
