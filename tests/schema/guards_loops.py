"""What each guard of dispatcher and ticker prevents: a small check that fails without it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg

from dispatch.dispatcher import Dispatcher
from dispatch.ticker import Ticker
from jobs.clock import DatabaseClock
from jobs.conf import conf
from jobs.models import CronDefinition, CronTick, QueueEntry
from jobs.sql import for_day, load
from jobs.tenants import tenant_ids
from tests.factories import dispatch, schedule

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)


def a_timer_is_not_dispatched_early(here: Connection) -> None:
    job = schedule(delay=HOUR)
    assert Dispatcher().run_once(here, job.due_at - conf().look_ahead) == 0


def what_was_set_aside_is_left(here: Connection) -> None:
    job = schedule(delay=HOUR)
    work = Dispatcher()
    work._aside.add(job.id)
    assert work.run_once(here, job.due_at) == 0


def a_late_timer_runs_from_now_on(here: Connection) -> None:
    job = schedule(delay=HOUR)
    dispatch(here, ahead=HOUR)
    assert QueueEntry.objects.get().run_at == job.due_at


def only_what_has_an_entry_is_set_aside(here: Connection) -> None:
    schedule()
    job = schedule(delay=HOUR)
    values = {"until": job.due_at + HOUR, "aside": []}
    assert here.execute(for_day("timer_with_entry", job.due_at.date()), values).fetchone() is None


def _define(here: Connection, **change: Any) -> CronDefinition:
    tenant = tenant_ids(["default"])["default"]
    made: CronDefinition = CronDefinition.objects.create(
        name="c", tenant_id=tenant, expression="* * * * *", job_type="test.noop", **change
    )
    return made


def _tick(here: Connection) -> None:
    work = Ticker()
    work._synced = True
    work.run_once(here, DatabaseClock().read(here))


def a_slot_is_ticked_once(here: Connection) -> None:
    definition = _define(here)
    _tick(here)
    ticks = CronTick.objects.count()
    here.execute("UPDATE jobs_crondefinition SET next_slot = NULL, last_slot = %s", [definition.created_at])
    _tick(here)
    assert CronTick.objects.count() == ticks > 0


def what_is_disabled_does_not_fire(here: Connection) -> None:
    _define(here, enabled=False)
    _tick(here)
    assert not CronTick.objects.exists()


def what_is_broken_is_left_alone(here: Connection) -> None:
    _define(here, broken="yes")
    _tick(here)
    assert not CronTick.objects.exists()


def a_cursor_never_goes_back(here: Connection) -> None:
    later = DatabaseClock().read(here) + 5 * HOUR
    definition = _define(here, last_slot=later)
    moved = {"ids": [definition.id], "nexts": [later], "lasts": [later - HOUR], "brokens": [""]}
    here.execute(load("advance_definitions"), moved)
    definition.refresh_from_db()
    assert definition.last_slot == later
