"""Intervals, single moments, ends, numbers of runs, jitter and spread, as tickers carry them out."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from jobs import clock
from jobs.context import Context
from jobs.ids import ceil_ms
from jobs.models import CronDefinition, CronTick, Job
from jobs.reconcile import reconcile
from jobs.states import JobState
from tests.db.test_ticker import AHEAD, MINUTE, by_sql, define, slots, soon, tick
from tests.factories import schedule

Connection = psycopg.Connection[Any]


def past(minutes: int = 30) -> datetime:
    return clock.now() - minutes * MINUTE


def watched(here: Connection, definition: CronDefinition, start: datetime, minutes: int) -> None:
    """A ticker each minute since `start`."""
    by_sql(definition, last_slot=start, revised_at=start)
    for minute in range(minutes + 1):
        tick(here, start + minute * MINUTE)


def interval(every: timedelta, **options: Any) -> CronDefinition:
    return define(expression="", every=every, **options)


def is_clean(start: datetime, minutes: int) -> bool:
    return reconcile(start - MINUTE, now=start + minutes * MINUTE).breaches == []


def dues(definition: CronDefinition) -> list[datetime]:
    return sorted(Job.objects.filter(cron_id=definition.pk).values_list("due_at", flat=True))


def test_an_interval_fires_from_its_anchor_on(here: Connection) -> None:
    start = past()
    definition = interval(timedelta(seconds=90), anchor_at=start + timedelta(seconds=10))
    watched(here, definition, start, 8)
    assert dues(definition) == [ceil_ms(slot) for slot in slots(definition)]
    assert slots(definition)[0] == start + timedelta(seconds=10)
    assert [
        later - sooner for sooner, later in zip(slots(definition), slots(definition)[1:], strict=False)
    ] == [timedelta(seconds=90)] * (len(slots(definition)) - 1)
    assert len(slots(definition)) == 7
    assert is_clean(start, 8)


def test_an_interval_shorter_than_a_minute_is_written_ahead_like_any_other(here: Connection) -> None:
    now = clock.now()
    definition = interval(timedelta(seconds=5), anchor_at=now, last_slot=now)
    tick(here, now)
    assert len(slots(definition)) == AHEAD // timedelta(seconds=5)


def test_without_an_anchor_it_counts_from_its_making(here: Connection) -> None:
    definition = interval(timedelta(hours=7))
    tick(here)
    definition.refresh_from_db()
    assert definition.next_slot == definition.created_at + timedelta(hours=7)


def test_one_moment_fires_once_and_is_over(here: Connection) -> None:
    start = past()
    definition = define(expression="", run_at=clock.now() + MINUTE)
    by_sql(definition, run_at=start + 3 * MINUTE)
    watched(here, definition, start, 8)
    assert slots(definition, "fired") == [start + 3 * MINUTE]
    definition.refresh_from_db()
    assert (definition.look_at, definition.next_slot, definition.runs) == (None, None, 1)
    assert tick(here, clock.now() + timedelta(days=1)) == 0
    assert is_clean(start, 30)


def test_an_ended_definition_goes_on_when_its_rule_is_changed(here: Connection) -> None:
    definition = define(max_runs=1)
    tick(here)
    assert len(slots(definition)) == 1
    by_sql(definition, max_runs=None)
    tick(here)
    assert len(slots(definition)) > 1


@pytest.mark.parametrize("overlap", ["allow_all", "buffer_all"])
def test_it_ends_after_its_number_of_runs(here: Connection, overlap: str) -> None:
    start = past()
    definition = define(max_runs=3, overlap=overlap)
    watched(here, definition, start, 9)
    assert len(slots(definition)) == 3
    definition.refresh_from_db()
    assert (definition.runs, definition.look_at is None) == (3, overlap == "allow_all")
    assert is_clean(start, 9)
    definition.pause()
    tick(here)
    assert is_clean(start, 30), "a pause of what is over leaves nothing untold"


def test_a_run_that_was_withdrawn_is_not_counted(here: Connection) -> None:
    definition = define(expression=soon(), max_runs=1)
    tick(here)
    definition.pause()
    definition.resume()
    assert definition.runs == 0
    tick(here)
    assert {job.state for job in Job.objects.order_by("-due_at", "-id")[:2]} <= {
        JobState.SCHEDULED,
        JobState.QUEUED,
        JobState.CANCELLED,
    }
    assert CronTick.objects.filter(outcome="fired").count() == 1


def test_a_start_that_an_edit_drops_is_not_counted(here: Connection) -> None:
    start = past()
    definition = define(max_runs=2, overlap="buffer_all")
    watched(here, definition, start, 2)
    definition.refresh_from_db()
    assert definition.runs == 2
    by_sql(definition, priority=1)
    definition.refresh_from_db()
    assert definition.runs == 1
    assert is_clean(start, 2)


def test_what_is_skipped_is_no_run(here: Connection) -> None:
    start = past()
    definition = define(max_runs=2, overlap="skip")
    watched(here, definition, start, 5)
    assert (len(slots(definition, "fired")), len(slots(definition, "skipped"))) == (1, 4)


def test_jitter_is_the_same_whoever_works_it_out_and_stays_before_the_next_slot(here: Connection) -> None:
    start = past()
    definition = define(jitter=timedelta(seconds=90))  # some are cut off, and some are not
    watched(here, definition, start, 20)
    delays = [job.due_at - job.slot for job in Job.objects.filter(cron_id=definition.pk)]
    assert all(timedelta() <= delay < MINUTE for delay in delays)
    assert len(set(delays)) > 1
    assert is_clean(start, 20)


def test_jitter_is_a_hash_of_definition_and_slot(here: Connection) -> None:
    start = past()
    definition = define(expression="*/5 * * * *", jitter=timedelta(minutes=2))
    watched(here, definition, start, 20)
    by_sql(definition, priority=1)
    first = {job.slot: job.due_at for job in Job.objects.filter(cron_id=definition.pk)}
    by_sql(definition, last_slot=start, look_at=start, misfire="run_all", misfire_grace=timedelta(hours=1))
    tick(here, start + 20 * MINUTE)
    second = {job.slot: job.due_at for job in Job.objects.filter(cron_id=definition.pk, priority=1)}
    assert second == {slot: first[slot] for slot in second}
    assert len(second) >= 4


def test_spread_is_one_delay_for_all_slots_and_another_for_each_definition(here: Connection) -> None:
    start = past()
    definitions = [define(f"c{n}", expression="*/10 * * * *", spread=timedelta(minutes=5)) for n in range(12)]
    CronDefinition.objects.update(last_slot=start, revised_at=start)
    for minute in range(25):
        tick(here, start + minute * MINUTE)
    delays = set()
    for definition in definitions:
        (delay,) = {job.due_at - job.slot for job in Job.objects.filter(cron_id=definition.pk)}
        delays.add(delay)
        assert timedelta() <= delay < timedelta(minutes=5)
    assert len(delays) > 8
    assert is_clean(start, 24)


def test_a_handler_is_told_the_slot(here: Connection) -> None:
    definition = define()
    tick(here)
    job = Job.objects.filter(cron_id=definition.pk)[0]
    other = schedule()
    for each, slot in ((job, job.slot), (other, None)):
        context = Context(each.pk, each.job_type, 1, 1, "default", each.queue)
        assert context.slot == slot
    assert job.slot == CronTick.objects.get(job_id=job.pk).slot


def test_more_slots_than_one_look_may_write_are_written_in_several(here: Connection) -> None:
    """A grace of an hour and an interval of a second: 3,600 slots that are on time."""
    start = past(60)
    definition = interval(timedelta(seconds=1), misfire_grace=timedelta(hours=2))
    by_sql(definition, last_slot=start, revised_at=start)
    looks = 0
    while tick(here, start + timedelta(minutes=40)):
        looks += 1
        assert looks < 10
    assert looks == 3
    assert len(slots(definition, "fired")) == len(set(slots(definition))) >= 2400 + 120
    assert is_clean(start, 40)
