"""Tickers side by side, and against an edit: each slot is written once, under the rule that holds."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import transaction

from dispatch.ticker import Ticker
from jobs import clock, verbs
from jobs.models import CronDefinition, CronRun, CronTick, Job
from jobs.reconcile import reconcile
from jobs.tenants import tenant_ids
from tests.db.test_ticker import far
from tests.factories import own_connection
from tests.racing import (
    Connection,
    assert_sound,
    at_once,
    beside,
    beside_on_own,
    pid_of_django,
    wait_for_waiter,
)

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]


def define(now: datetime, name: str = "minutely") -> CronDefinition:
    """Two slots of it lie in the two minutes after `now`, its cursor."""
    tenant_id = tenant_ids(["default"])["default"]
    return CronDefinition.objects.create(
        name=name, tenant_id=tenant_id, expression="* * * * *", job_type="test.noop", last_slot=now
    )


def written(now: datetime) -> tuple[list[datetime], list[datetime]]:
    """The slots that have a tick and those that have a job, by what is in the tables."""
    start, end = now - timedelta(hours=1), now + timedelta(days=1)
    ticks = CronTick.objects.filter(slot__gte=start, slot__lt=end).values_list("slot", flat=True)
    jobs = Job.objects.due_between(start, end).values_list("due_at", flat=True)
    return sorted(ticks), sorted(jobs)


def test_du_01_of_two_tickers_in_one_moment_the_second_writes_nothing_and_does_not_wait(
    connection: Connection,
) -> None:
    now = clock.now()
    define(now)
    with own_connection() as other:
        with connection.transaction():
            assert Ticker().run_once(connection, now) == 1
            assert Ticker().run_once(other, now) == 0
        assert Ticker().run_once(other, now) == 0
    ticks, jobs = written(now)
    assert ticks == jobs
    assert len(set(ticks)) == len(ticks) == 2
    assert_sound()


def test_du_02_a_ticker_that_repeats_a_slot_writes_neither_tick_nor_job(connection: Connection) -> None:
    """Its cursor was put back by a restored backup, or by hand: the slot's own row says that it was written."""
    now = clock.now()
    definition = define(now)
    Ticker().run_once(connection, now)
    before = written(now)
    CronDefinition.objects.filter(pk=definition.pk).update(look_at=now, last_slot=now)
    assert Ticker().run_once(connection, now) == 1
    assert written(now) == before
    assert_sound()


def test_du_01_eight_tickers_write_each_slot_of_fifty_definitions_once(connection: Connection) -> None:
    now = clock.now()
    for number in range(50):
        define(now, f"d{number}")
    tickers = [Ticker() for _ in range(8)]
    assert sum(at_once([lambda own, ticker=ticker: ticker.run_once(own, now) for ticker in tickers])) == 50  # type: ignore[misc]
    ticks, jobs = written(now)
    assert ticks == jobs
    assert len(ticks) == 100
    assert CronTick.objects.filter(slot__gt=now).values("definition_id", "slot").distinct().count() == 100
    assert_sound()


def test_du_04_while_one_ticker_is_slow_the_passes_of_others_write_nothing(connection: Connection) -> None:
    now = clock.now()
    define(now)
    with own_connection() as other:
        with connection.transaction():
            connection.execute("LOCK TABLE jobs_job IN SHARE MODE")
            slow = beside_on_own(lambda own: Ticker().run_once(own, now))
            wait_for_waiter(connection)
            later = [now + timedelta(milliseconds=100 * n) for n in range(1, 21)]
            assert [Ticker().run_once(other, each) for each in later] == [0] * 20
        assert slow.result(30) == 1
        assert Ticker().run_once(other, now) == 0
    ticks, jobs = written(now)
    assert ticks == jobs
    assert len(set(ticks)) == len(ticks) == 2
    assert_sound()


def test_a_tick_that_is_rolled_back_leaves_the_slot_to_the_next(connection: Connection) -> None:
    now = clock.now()
    define(now)
    with connection.transaction(force_rollback=True):
        assert Ticker().run_once(connection, now) == 1
    assert written(now) == ([], [])
    assert Ticker().run_once(connection, now) == 1
    assert len(written(now)[1]) == 2
    assert_sound()


def test_a_ticker_passes_over_a_definition_that_is_being_edited_and_then_follows_the_new_rule(
    connection: Connection,
) -> None:
    now = clock.now()
    definition = define(now)
    with transaction.atomic():
        CronDefinition.objects.filter(pk=definition.pk).update(expression=far())
        assert Ticker().run_once(connection, now) == 0
    assert Ticker().run_once(connection, now) == 1
    assert written(now)[1] == []
    assert set(CronTick.objects.values_list("outcome", flat=True)) <= {
        "missed"
    }  # a minute may begin before the edit
    assert_sound()


def test_an_edit_waits_for_a_ticker_and_withdraws_what_it_wrote_ahead(connection: Connection) -> None:
    now = clock.now()
    definition = define(now)
    disable = CronDefinition.objects.filter(pk=definition.pk).update
    with connection.transaction():
        assert Ticker().run_once(connection, now) == 1
        edit = beside(lambda: disable(enabled=False))
        wait_for_waiter(connection)
    assert edit.result(30) == 1
    ahead = CronTick.objects.filter(slot__gt=clock.now() + timedelta(seconds=1))
    assert set(ahead.values_list("outcome", flat=True)) <= {"replaced"}
    start = clock.now() + timedelta(seconds=1)
    states = Job.objects.with_state(start, start + timedelta(hours=1)).values_list("state", flat=True)
    assert set(states) == {"cancelled"}
    assert_sound()


def test_du_01_thirty_tickers_in_one_moment_write_each_slot_of_a_thousand_definitions_once(
    connection: Connection,
) -> None:
    now = clock.now()
    tenant_id = tenant_ids(["default"])["default"]
    CronDefinition.objects.bulk_create(
        CronDefinition(
            name=f"d{number}", tenant_id=tenant_id, expression="* * * * *", job_type="test.noop", last_slot=now,
            revised_at=now, overlap="skip" if number % 4 == 0 else "allow_all",
        )
        for number in range(1000)
    )  # fmt: skip

    def until_none_is_left(own: Connection) -> int:
        work, found = Ticker(), 0
        work._synced = True
        while amount := work.run_once(own, now + timedelta(minutes=3)):
            found += amount
        return found

    at_once([until_none_is_left] * 30)
    assert reconcile(now - timedelta(hours=1), now=now + timedelta(minutes=3)).breaches == []
    ticks, jobs = written(now)
    assert ticks
    assert len(jobs) == CronTick.objects.filter(slot__gt=now, outcome__in=["fired", "late"]).count()
    assert_sound()


def test_of_two_tickers_one_starts_what_waits(connection: Connection) -> None:
    now = clock.now() - timedelta(minutes=10)
    definition = define(now)
    CronDefinition.objects.filter(pk=definition.pk).update(overlap="buffer_all")
    CronDefinition.objects.filter(pk=definition.pk).update(last_slot=now, revised_at=now)
    tickers = [Ticker(), Ticker()]
    for minutes in (1, 2):
        tickers[0].run_once(connection, now + timedelta(minutes=minutes))
    running = CronRun.objects.get(job_id__isnull=False)
    assert running.job_id
    verbs.cancel([running.job_id])
    later = now + timedelta(minutes=2, seconds=2)
    assert sum(at_once([lambda own, each=each: each.run_once(own, later) for each in tickers])) == 1  # type: ignore[misc]
    assert Job.objects.filter(cron_id=definition.pk).count() == 2
    assert_sound()


@pytest.mark.parametrize("verb", ["backfill", "run_now"])
def test_two_backfills_at_once_run_each_slot_once(connection: Connection, verb: str) -> None:
    now = clock.now()
    definition = define(now)
    end = now.replace(second=0, microsecond=0)
    act = {
        "backfill": lambda: definition.backfill(end - timedelta(minutes=9), end).missing,
        "run_now": lambda: bool(definition.run_now()),
    }[verb]
    with transaction.atomic():
        CronDefinition.objects.select_for_update().get(pk=definition.pk)
        both = [beside(act), beside(act)]
        wait_for_waiter(pid_of_django(), 2)
    found = sorted(each.result(30) for each in both)
    assert found == ([0, 10] if verb == "backfill" else [True, True])
    assert Job.objects.filter(cron_id=definition.pk).count() == (10 if verb == "backfill" else 2)
