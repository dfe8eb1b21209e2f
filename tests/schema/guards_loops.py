"""What each guard of dispatcher and ticker prevents: a small check that fails without it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import psycopg

from dispatch.dispatcher import Dispatcher
from dispatch.ticker import Ticker
from jobs.clock import DatabaseClock
from jobs.conf import conf
from jobs.models import CronDefinition, CronRevision, CronTick, QueueEntry
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


def _tick(here: Connection, now: datetime | None = None) -> None:
    work = Ticker()
    work._synced = True
    work.run_once(here, now or DatabaseClock().read(here))


def a_slot_is_ticked_once(here: Connection) -> None:
    definition, now = _define(here), DatabaseClock().read(here)
    _tick(here, now)
    ticks = CronTick.objects.count()
    here.execute("UPDATE jobs_crondefinition SET look_at = %s, last_slot = %s", [now, definition.created_at])
    _tick(here, now)  # as of the same instant: a minute may begin in between
    assert CronTick.objects.count() == ticks > 0
    definition.refresh_from_db()
    assert definition.broken == ""


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
    moved = {
        "ids": [definition.id], "nexts": [later], "lasts": [later - HOUR], "looks": [later], "runs": [0],
        "brokens": [""], "tz_version": "",
    }  # fmt: skip
    here.execute(load("advance_definitions"), moved)
    definition.refresh_from_db()
    assert definition.last_slot == later


def what_is_not_to_be_looked_at_yet_is_left(here: Connection) -> None:
    _define(here, look_at=DatabaseClock().read(here) + HOUR)
    _tick(here)
    assert not CronTick.objects.exists()


def what_is_locked_now_does_not_shorten_the_sleep(here: Connection) -> None:
    _define(here)
    assert here.execute(load("next_look"), {"now": DatabaseClock().read(here)}).fetchone() == (None,)


def what_is_disabled_wakes_nobody(here: Connection) -> None:
    now = DatabaseClock().read(here)
    _define(here, look_at=now + HOUR, enabled=False)
    assert here.execute(load("next_look"), {"now": now}).fetchone() == (None,)


def _revision(here: Connection, **change: Any) -> CronRevision:
    now = DatabaseClock().read(here)
    values = {"cursor": now - HOUR, "until": now, "since": now - HOUR, "enabled": True} | change
    return CronRevision.objects.create(
        definition_id=1, revision=1, expression="* * * * *", timezone="UTC", dst="cron", **values
    )


def a_rule_that_was_told_of_is_not_told_of_again(here: Connection) -> None:
    _revision(here, settled=True)
    _tick(here)
    assert not CronTick.objects.exists()


def _told_anew(here: Connection, outcome: str, **change: Any) -> bool:
    """Whether a tick of this outcome is written over."""
    _define(here)
    _tick(here)
    CronTick.objects.filter(pk=CronTick.objects.all()[0].pk).update(outcome=outcome, **change)
    tick = CronTick.objects.get(outcome=outcome)
    told = {"ids": [tick.id], "slots": [tick.slot], "outcomes": ["late"], "reasons": [""], "jobs": [None]}
    here.execute(load("retell_ticks"), told)
    tick.refresh_from_db()
    return tick.outcome == "late"


def what_has_run_is_not_told_anew(here: Connection) -> None:
    assert not _told_anew(here, "backfilled")


def what_was_dropped_is_not_told_anew(here: Connection) -> None:
    assert not _told_anew(here, "skipped", job_id=None)
