"""Clocks that jump, hosts that sleep, and new time zone data."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

from jobs import clock, rezone
from jobs.cron import tzdata
from jobs.models import CronDefinition, CronTick, Job, OperatorAction
from jobs.reconcile import reconcile
from tests.db.test_ticker import MINUTE, by_sql, define, far, slots, tick

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)


def test_ck_01_a_clock_that_was_ahead_repeats_nothing_and_goes_on_after_the_last_slot(
    here: Connection,
) -> None:
    now = clock.now()
    definition = define()
    tick(here, now + 6 * HOUR)
    before = slots(definition)
    for minutes in range(3):
        assert tick(here, now + minutes * MINUTE) == 0
    assert slots(definition) == before
    definition.refresh_from_db()
    assert definition.next_slot
    tick(here, now + 6 * HOUR + 2 * MINUTE)
    after = [slot for slot in slots(definition) if slot not in before]
    assert after[0] - max(before) == MINUTE
    assert reconcile(now - HOUR, now=now + 6 * HOUR).breaches == []


def test_ck_02_a_jump_of_six_hours_runs_each_of_a_hundred_hourly_definitions_once(here: Connection) -> None:
    now = clock.now().replace(minute=30)
    for n in range(100):
        define(f"c{n}", expression="5 * * * *", last_slot=now)
    CronDefinition.objects.update(revised_at=now)
    tick(here, now + 6 * HOUR)
    assert Job.objects.filter(cron_id__isnull=False).count() == 100
    told = Counter[str]()
    for row in CronTick.objects.all():
        told[row.outcome] += row.slots
    assert told == {"late": 100, "merged": 500}
    assert reconcile(now - HOUR, now=now + 6 * HOUR).breaches == []


@pytest.mark.parametrize(("misfire", "runs"), [("run_once", 1), ("run_all", 100), ("skip", 0)])
def test_a_dispatcher_that_slept_for_two_hours_follows_the_policy(
    here: Connection, misfire: str, runs: int
) -> None:
    now = clock.now().replace(second=30, microsecond=0)
    definition = define(misfire=misfire, misfire_grace=timedelta(), last_slot=now)
    by_sql(definition, revised_at=now)
    tick(here, now + 2 * HOUR)
    assert Job.objects.filter(due_at__lte=now + 2 * HOUR).count() == runs
    assert reconcile(now - HOUR, now=now + 2 * HOUR).breaches == []


def test_mi_01_a_slot_between_two_tickers_is_not_lost(here: Connection) -> None:
    slot = clock.now().replace(second=0, microsecond=0) + 10 * MINUTE
    definition = define(expression=f"{slot.minute} {slot.hour} * * *", overlap="skip")
    tick(here, slot - timedelta(seconds=3))
    tick(here, slot + timedelta(seconds=1))
    tick(here, slot + timedelta(seconds=46))
    assert slots(definition) == slots(definition, "fired") == [slot]


def test_ck_04_the_next_slot_follows_the_last_one_whatever_the_hosts_clock_says(here: Connection) -> None:
    definition = define()
    now = clock.now()
    for skew in (90, -90, 90, -90, 0):
        tick(here, now + timedelta(seconds=skew))
    found = slots(definition)
    assert [later - sooner for sooner, later in itertools.pairwise(found)] == [MINUTE] * (len(found) - 1)


def test_tz_15_a_new_zone_rules_at_once_for_what_was_pending_and_for_what_is_caught_up(
    here: Connection,
) -> None:
    tokyo, dubai = ZoneInfo("Asia/Tokyo"), ZoneInfo("Asia/Dubai")  # five hours apart, all year round
    now = clock.now()
    hour = (now.astimezone(tokyo) + 12 * HOUR).hour
    definition = define(expression=f"0 {hour} * * *", timezone=tokyo.key)
    tick(here)
    by_sql(definition, timezone=dubai.key)
    tick(here)
    definition.refresh_from_db()
    assert definition.next_slot
    assert definition.next_slot.astimezone(dubai).hour == hour
    tick(here, now + 25 * HOUR)
    (late,) = Job.objects.filter(cron_id=definition.pk)
    assert late.slot.astimezone(dubai).hour == hour


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> str:
    """This process has got new data."""
    version = "2999z"
    monkeypatch.setattr(rezone, "version", lambda: version)
    return version


def stored(definition: CronDefinition) -> tuple[datetime | None, str]:
    definition.refresh_from_db()
    return definition.next_slot, definition.tz_version


def test_each_expansion_notes_the_release_of_the_data(here: Connection) -> None:
    definition = define()
    tick(here)
    assert stored(definition)[1] == tzdata.version() != ""


def test_new_data_move_next_slots_and_that_is_reported(
    here: Connection, newer: str, caplog: pytest.LogCaptureFixture
) -> None:
    moved, same = (
        define("moved", expression=far(), timezone="Asia/Tokyo"),
        define("same", expression=far()),
    )
    tick(here)
    right, _ = stored(moved)
    assert right
    by_sql(moved, next_slot=right + HOUR, look_at=right + HOUR)  # as the old data had it
    now = clock.now()
    with caplog.at_level(logging.WARNING):
        assert rezone.rezone(now) == [(moved.pk, right + HOUR, right)]
    assert "time zone data changed" in caplog.text
    assert stored(moved) == (right, newer)
    assert stored(same)[1] == newer
    assert moved.look_at
    assert moved.look_at < right
    action = OperatorAction.objects.get()
    assert (action.verb, action.actor_name, action.changed) == ("rezone", f"tzdata {newer}", 1)
    assert action.target["crondefinitions"][0]["id"] == moved.pk
    assert rezone.rezone(now) == [], "it is done once"
    assert OperatorAction.objects.count() == 1


def test_what_the_old_data_wrote_ahead_is_withdrawn_when_the_new_ones_have_no_such_slot(
    here: Connection, newer: str
) -> None:
    definition = define()
    tick(here)
    row = CronTick.objects.order_by("slot")[1]
    CronTick.objects.filter(pk=row.pk).update(slot=row.slot + timedelta(seconds=1))
    now = clock.now()
    assert [pk for pk, _, _ in rezone.rezone(now)] == [definition.pk]
    definition.refresh_from_db()
    assert definition.revision == 2
    tick(here)
    assert slots(definition, "fired")


def test_older_data_of_another_host_undo_nothing(here: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = define(expression=far())
    tick(here)
    wrong = datetime(2999, 1, 1, tzinfo=UTC)
    by_sql(definition, next_slot=wrong)
    monkeypatch.setattr(rezone, "version", lambda: "1999a")
    assert rezone.rezone(clock.now()) == []
    assert stored(definition)[0] == wrong


def test_the_release_is_read_from_the_systems_files_or_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "UTC").touch()
    for name, text in (("tzdata.zi", "# version 2031b\n"), ("+VERSION", "2031c\n")):
        monkeypatch.setattr("zoneinfo.TZPATH", (str(tmp_path),))
        (tmp_path / name).write_text(text)
        tzdata.version.cache_clear()
        assert tzdata.version() == text.split()[-1]
        (tmp_path / name).unlink()
    tzdata.version.cache_clear()
    assert tzdata.version() == tzdata.UNKNOWN
    monkeypatch.setattr("zoneinfo.TZPATH", ())
    tzdata.version.cache_clear()
    assert tzdata.version()[:2] == "20"
    tzdata.version.cache_clear()
