from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import DataError, IntegrityError, transaction

from dispatch.ticker import Ticker
from jobs import clock
from jobs.models import CronDefinition, CronTick, Job, QueueEntry, Timer
from jobs.states import JobState
from jobs.tenants import tenant_ids

Connection = psycopg.Connection[Any]
MINUTE, AHEAD = timedelta(minutes=1), timedelta(seconds=120)


def define(name: str = "c", **options: Any) -> CronDefinition:
    """A definition that counts from now on; `since`: from some time before."""
    since = options.get("last_slot") or clock.now() - options.pop("since", timedelta())
    rule = {"last_slot": since, "revised_at": since, "expression": "* * * * *", "job_type": "test.noop"}
    made: CronDefinition = CronDefinition.objects.create(
        name=name, tenant_id=tenant_ids(["default"])["default"], **rule | options
    )
    return made


def soon() -> str:
    """Once an hour, the next time in one to two minutes: written ahead at once, and not past before a test is over."""
    return f"{(clock.now() + 2 * MINUTE).minute} * * * *"


def far() -> str:
    """Once a year, half a year from now."""
    return f"{clock.now() + timedelta(days=180):0 9 %d %m} *"


def by_sql(definition: CronDefinition, **values: Any) -> None:
    """What no check has seen: as an older release or another program may have stored it."""
    CronDefinition.objects.filter(pk=definition.pk).update(**values)


def tick(here: Connection, now: datetime | None = None) -> int:
    """One pass of a ticker of its own, which looks at what is stored alone."""
    work = Ticker()
    work._synced = True
    return work.run_once(here, now or clock.now())


def cursor(definition: CronDefinition) -> datetime:
    assert definition.last_slot
    return definition.last_slot


def slots(definition: CronDefinition, outcome: str | None = None) -> list[datetime]:
    ticks = CronTick.objects.filter(definition_id=definition.id)
    return sorted((ticks.filter(outcome=outcome) if outcome else ticks).values_list("slot", flat=True))


def expected(start: datetime, end: datetime) -> list[datetime]:
    """Every full minute in (start, end]."""
    first = start.replace(second=0, microsecond=0) + MINUTE
    return [first + n * MINUTE for n in range(int((end - first) / MINUTE) + 1)]


def test_slots_are_written_ahead_with_a_job_each(here: Connection) -> None:
    definition = define(payload={"a": 1}, queue="q", priority=3, max_attempts=2)
    now = clock.now()
    assert tick(here, now) == 1
    assert slots(definition) == slots(definition, "fired") == expected(cursor(definition), now + AHEAD)
    for row in CronTick.objects.all():
        job = Job.objects.get(pk=row.job_id)
        assert (job.due_at, job.cron_id, job.payload) == (row.slot, definition.id, {"a": 1})
        assert (job.queue, job.priority, job.max_attempts) == ("q", 3, 2)
        assert job.state in (JobState.SCHEDULED, JobState.QUEUED)
    assert Timer.objects.count() + QueueEntry.objects.count() == CronTick.objects.count()


def test_each_slot_has_one_tick_and_one_job_however_often_and_by_whomever_it_is_passed(
    here: Connection,
) -> None:
    definition = define()
    start = clock.now()
    tickers = Ticker(), Ticker()
    for each in tickers:
        each._synced = True
    for seconds in range(0, 600, 50):
        for each in tickers:
            each.run_once(here, start + timedelta(seconds=seconds))
    assert slots(definition) == expected(cursor(definition), start + timedelta(seconds=550) + AHEAD)
    assert Job.objects.count() == CronTick.objects.count()


def test_a_cursor_that_went_back_writes_nothing_twice(here: Connection) -> None:
    definition = define()
    now = clock.now()
    tick(here, now)
    before = (CronTick.objects.count(), Job.objects.count())
    by_sql(definition, look_at=now, last_slot=definition.last_slot)
    assert tick(here, now) == 1
    assert (CronTick.objects.count(), Job.objects.count()) == before


def test_what_is_not_due_is_not_looked_at(here: Connection) -> None:
    define(expression=far())
    assert tick(here) == 1
    assert tick(here) == 0
    assert not Job.objects.exists()
    assert CronDefinition.objects.get().next_slot is not None


def test_a_disabled_definition_does_not_fire(here: Connection) -> None:
    define(enabled=False)
    assert tick(here) == 0
    assert not CronTick.objects.exists()


@pytest.mark.parametrize(
    ("misfire", "outcomes"),
    [("run_once", {"merged": 1, "late": 1}), ("run_all", {"late": 9}), ("skip", {"skipped": 1})],
)
def test_missed_slots_follow_the_policy(here: Connection, misfire: str, outcomes: dict[str, int]) -> None:
    """Nothing ran for nine slots, and no other one comes soon."""
    now = clock.now().replace(second=30, microsecond=0)
    define(
        misfire=misfire,
        misfire_grace=timedelta(),
        expression=",".join(str((now - n * MINUTE).minute) for n in range(2, 11)) + " * * * *",
        last_slot=now - timedelta(minutes=10, seconds=31),
    )
    tick(here, now)
    ticks = CronTick.objects.filter(slot__lte=now)
    assert Counter(ticks.values_list("outcome", flat=True)) == outcomes
    assert Job.objects.filter(due_at__lte=now).count() == outcomes.get("late", 0)
    assert sum(row.slots for row in ticks) == 9, "every slot is accounted for"


def test_slots_older_than_the_window_are_one_row_that_says_missed(here: Connection) -> None:
    now = clock.now()
    define(misfire="run_all", catchup_window=timedelta(minutes=5), since=timedelta(minutes=30))
    tick(here, now)
    missed = CronTick.objects.get(outcome="missed")
    assert missed.reason == "older than the catch-up window"
    assert missed.slots == len(expected(missed.slot - MINUTE, missed.last_slot or missed.slot))
    assert 23 <= missed.slots <= 26


def test_no_more_than_the_limit_is_caught_up(here: Connection) -> None:
    define(misfire="run_all", catchup_limit=3, since=timedelta(minutes=30))
    tick(here)
    assert CronTick.objects.filter(outcome="late").count() == 3
    assert CronTick.objects.get(outcome="missed").reason == "over the catch-up limit"


def test_a_broken_definition_is_marked_and_the_others_go_on(here: Connection) -> None:
    broken, other = define("broken", expression=soon()), define("other")
    by_sql(broken, timezone="Mars/Olympus")
    now = clock.now()
    assert tick(here, now) == 2
    assert not slots(broken)
    assert slots(other)
    broken.refresh_from_db()
    assert "Mars/Olympus" in broken.broken
    assert tick(here, now) == 0
    broken.timezone = "UTC"
    broken.save()
    tick(here)
    assert slots(broken)


@pytest.mark.parametrize(("field", "wrong"), [("overlap", "forbid"), ("misfire", "never")])
def test_a_policy_that_is_none_breaks_its_definition_until_it_is_mended(
    here: Connection, field: str, wrong: str
) -> None:
    definition = define(expression=soon())
    by_sql(definition, **{field: wrong})
    tick(here)
    definition.refresh_from_db()
    assert f"{field}: '{wrong}' is not one of" in definition.broken
    assert not slots(definition)
    setattr(definition, field, {"overlap": "allow_all", "misfire": "skip"}[field])
    definition.save()
    tick(here)
    assert slots(definition)


def test_a_type_that_nobody_knows_still_gets_its_jobs(here: Connection) -> None:
    by_sql(define(), job_type="nobody.knows")
    tick(here)
    assert set(Job.objects.values_list("queue", flat=True)) == {"nobody.knows"}


def test_slots_begin_at_the_start_and_end_at_the_end_both_included(here: Connection) -> None:
    now = clock.now().replace(second=0, microsecond=0)
    definition = define(last_slot=now, start_at=now + MINUTE, end_at=now + 3 * MINUTE)
    for minutes in range(7):
        tick(here, now + minutes * MINUTE)
    assert slots(definition) == [now + MINUTE, now + 2 * MINUTE, now + 3 * MINUTE]
    assert tick(here, now + timedelta(days=1)) == 0


def test_an_end_before_the_start_is_refused_by_the_database(here: Connection) -> None:
    now = clock.now()
    definition = define()
    with pytest.raises(IntegrityError), transaction.atomic():
        by_sql(definition, start_at=now, end_at=now)


@pytest.mark.parametrize(
    "values",
    [
        {"expression": "nonsense"},
        {"timezone": "Nowhere/At_All"},
        {"dst": "unheard of"},
        {"overlap": "unheard of"},
        {"misfire": "unheard of"},
        {"payload": [1]},
        {"payload": {"value": "x" * 300_000}},
        {"every": timedelta(), "expression": ""},
        {"every": -MINUTE, "expression": ""},
        {"catchup_limit": -1},
        {"jitter": -MINUTE},
    ],
    ids=lambda values: str(values)[:40],
)
def test_one_poison_definition_in_a_pass_takes_no_other_along(
    here: Connection, values: dict[str, Any]
) -> None:
    good = [define(f"good {n}", since=MINUTE) for n in range(5)]
    bad = define("bad", since=2 * MINUTE)  # due first
    try:
        with transaction.atomic():
            by_sql(bad, **values, next_slot=None, look_at=clock.now() - MINUTE)
    except (IntegrityError, DataError):
        return  # the database itself refuses it
    tick(here)
    assert {tick.definition_id for tick in CronTick.objects.all()} >= {each.pk for each in good}


def test_mi_03_a_slot_whose_row_was_deleted_by_hand_is_told_and_stops_no_other(
    here: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """Its job is there: written a second time it would collide."""
    bad = define("bad", since=2 * MINUTE)
    tick(here)
    CronTick.objects.filter(definition_id=bad.pk).delete()
    by_sql(bad, last_slot=bad.last_slot, look_at=clock.now() - MINUTE)
    good = [define(f"good {n}", since=MINUTE) for n in range(3)]
    tick(here)
    assert {tick.definition_id for tick in CronTick.objects.all()} == {each.pk for each in good}
    bad.refresh_from_db()
    assert "duplicate key" in bad.broken
    assert "cron definition is broken" in caplog.text
    for each in good:
        each.refresh_from_db()
        assert each.look_at
        assert (each.broken, each.look_at > clock.now() - MINUTE) == ("", True)
