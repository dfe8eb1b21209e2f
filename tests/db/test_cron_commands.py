"""Pause, resume, run now and backfill: by the API and by the pages of the admin."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.test import Client

from jobs import clock
from jobs.backfill import MOST
from jobs.errors import CronError
from jobs.models import CronDefinition, CronRun, CronTick, Job, OperatorAction
from jobs.reconcile import reconcile
from jobs.states import JobState
from tests.db.test_admin_tools import messages_of, operator_with
from tests.db.test_ticker import AHEAD, MINUTE, by_sql, define, expected, slots, soon, tick

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)


def test_a_pause_withdraws_what_was_written_ahead_and_keeps_its_note(here: Connection) -> None:
    definition = define(expression=soon())
    tick(here)
    assert definition.pause("the database moves")
    assert not definition.pause("again")
    assert (definition.enabled, definition.note) == (False, "the database moves")
    assert {job.state for job in Job.objects.all()} == {JobState.CANCELLED}
    assert tick(here, clock.now() + HOUR) <= 1
    assert set(CronTick.objects.values_list("outcome", flat=True)) == {"replaced"}


@pytest.mark.parametrize("minutes", [101, 10_000])
def test_de_03_a_long_pause_ends_without_a_flood(here: Connection, minutes: int) -> None:
    definition = define()
    definition.pause()
    since = clock.now() - minutes * MINUTE
    by_sql(definition, last_slot=since, revised_at=since)
    assert definition.resume()
    assert not definition.resume()
    now = clock.now()
    tick(here, now)
    told = expected(definition.revised_at, now + AHEAD)
    assert slots(definition, "fired") == told
    paused = CronTick.objects.get(outcome="skipped")
    assert paused.reason == "paused"
    assert paused.slots in (min(minutes - 1, 1000), min(minutes, 1000), min(minutes + 1, 1000))
    assert Job.objects.count() == len(told)
    assert reconcile(since - HOUR if minutes < 1000 else now - HOUR, now=now).breaches == []


def test_de_01_enabling_again_does_not_run_what_was_missed(here: Connection) -> None:
    now = clock.now()
    definition = define(expression=f"{(now - 30 * MINUTE).minute} * * * *")
    definition.pause()
    by_sql(definition, last_slot=now - HOUR, revised_at=now - HOUR)
    definition.resume()
    tick(here)
    assert not Job.objects.exists()
    assert CronTick.objects.get().reason == "paused"


def test_run_now_runs_once_and_is_told_as_such(here: Connection) -> None:
    definition = define(payload={"a": 1}, enabled=False)
    job = Job.objects.get(pk=definition.run_now())
    assert (job.payload, job.cron_id, job.state) == ({"a": 1}, definition.pk, JobState.QUEUED)
    row = CronTick.objects.get()
    assert (row.outcome, row.job_id, row.slot) == ("manual", job.pk, job.slot)
    assert definition.run_now() != job.pk
    assert reconcile(clock.now() - HOUR).breaches == []


def a_stretch(minutes: int = 10) -> tuple[datetime, datetime]:
    """From a full minute to a full minute, of today or yesterday."""
    end = clock.now().replace(second=0, microsecond=0) - 5 * MINUTE
    return end - (minutes - 1) * MINUTE, end


def test_a_backfill_first_counts(here: Connection) -> None:
    definition = define()
    found = definition.backfill(*a_stretch(), dry_run=True)
    assert (found.slots, found.ran, found.missing, found.job_ids) == (10, 0, 10, ())
    assert not Job.objects.exists()


def test_a_backfill_runs_each_slot_of_both_ends_spread_by_its_rate(here: Connection) -> None:
    definition = define()
    start, end = a_stretch()
    now = clock.now()
    found = definition.backfill(start, end, rate=2)
    jobs = list(Job.objects.order_by("due_at"))
    assert [job.pk for job in jobs] == list(found.job_ids)
    assert [job.slot for job in jobs] == [start + n * MINUTE for n in range(10)]
    assert timedelta() <= jobs[0].due_at - now < MINUTE
    assert [(job.due_at - jobs[0].due_at) / timedelta(seconds=0.5) for job in jobs] == list(range(10))
    assert slots(definition, "backfilled") == [job.slot for job in jobs]
    assert reconcile(start - HOUR).breaches == []


def test_a_backfill_leaves_out_what_has_run(here: Connection) -> None:
    start, end = a_stretch()
    definition = define(
        last_slot=start - MINUTE, misfire="run_all", misfire_grace=timedelta(), catchup_limit=4
    )
    by_sql(definition, revised_at=start - MINUTE)
    tick(here, end + MINUTE / 2)
    ran = Counter(CronTick.objects.filter(slot__lte=end).values_list("outcome", flat=True))
    assert ran == {"missed": 1, "late": 4}
    found = definition.backfill(start, end)
    assert (found.slots, found.ran, len(found.job_ids)) == (10, 4, 6)
    again = definition.backfill(start, end)
    assert (again.ran, again.missing) == (10, 0)


def test_a_backfill_can_run_one_after_another(here: Connection) -> None:
    definition = define()
    start, end = a_stretch(3)
    definition.backfill(start, end, overlap="buffer_all")
    assert CronRun.objects.count() == 3
    assert not Job.objects.exists()
    tick(here)
    assert Job.objects.filter(slot__lte=end).count() == 1
    tick(here)
    assert Job.objects.filter(slot__lte=end).count() == 1, "the first has not ended"
    Job.objects.filter(slot__lte=end).cancel()
    definition.pause()
    definition.resume()
    tick(here, clock.now() + timedelta(seconds=2))
    assert Job.objects.filter(slot__lte=end).count() == 2, "an edit does not drop what was asked for"
    assert all(job.due_at > end for job in Job.objects.filter(slot__lte=end))
    assert reconcile(start - HOUR).breaches == []


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("end", {"end": timedelta(hours=1)}),
        ("end", {"start": -HOUR, "end": -2 * HOUR}),
        ("end", {"start": -timedelta(days=20)}),
        ("start", {"start": -timedelta(days=40)}),
        ("rate", {"rate": 0}),
        ("rate", {"rate": 1001}),
        ("overlap", {"overlap": "skip"}),
    ],
)
def test_a_backfill_that_cannot_be_is_refused(here: Connection, field: str, options: dict[str, Any]) -> None:
    definition, now, options = define(), clock.now(), dict(options)
    start, end = now + options.pop("start", -HOUR), now + options.pop("end", timedelta())
    with pytest.raises(CronError) as refusal:
        definition.backfill(start, end, **options)
    assert refusal.value.field == field
    assert MOST == 10_000


def command(client: Client, definition: CronDefinition, verb: str, **values: Any) -> Any:
    return client.post(f"/admin/jobs/crondefinition/{definition.pk}/command/{verb}/", values, follow=True)


@pytest.mark.parametrize("verb", ["pause", "resume", "run", "backfill"])
def test_a_button_asks_first_and_does_nothing(admin_client: Client, here: Connection, verb: str) -> None:
    definition = define(enabled=verb != "resume")
    assert b'name="confirmed"' in command(admin_client, definition, verb).content
    assert not Job.objects.exists()
    assert not OperatorAction.objects.exists()
    assert CronDefinition.objects.get().revision == 1


def test_a_pause_by_the_page_is_recorded_with_its_reason(admin_client: Client, here: Connection) -> None:
    definition = define()
    page = command(admin_client, definition, "pause", confirmed="1", reason="the database moves")
    assert "c is paused" in messages_of(page)
    assert "the database moves" in admin_client.get("/admin/jobs/crondefinition/").text
    action = OperatorAction.objects.get()
    assert (action.verb, action.reason, action.target["id"]) == ("pause", "the database moves", definition.pk)
    assert command(admin_client, definition, "resume", confirmed="1").status_code == 200
    definition.refresh_from_db()
    assert (definition.enabled, definition.note) == (True, "")


def test_run_now_by_the_page(admin_client: Client, here: Connection) -> None:
    page = command(admin_client, define(), "run", confirmed="1")
    assert any("runs now: job " in message for message in messages_of(page))
    assert Job.objects.count() == 1
    assert OperatorAction.objects.get().verb == "run"


def test_a_backfill_by_the_page_counts_and_then_runs(admin_client: Client, here: Connection) -> None:
    definition = define()
    start, end = a_stretch()
    values = {
        "confirmed": "1", "start_0": f"{start:%Y-%m-%d}", "start_1": f"{start:%H:%M}", "end_0": f"{end:%Y-%m-%d}",
        "end_1": f"{end:%H:%M}", "rate": "10", "overlap": "allow_all",
    }  # fmt: skip
    page = command(admin_client, definition, "backfill", dry_run="on", **values)
    assert "c: 10 slots, 0 of them have run; 10 would run" in messages_of(page)
    assert not Job.objects.exists()
    page = command(admin_client, definition, "backfill", **values)
    assert "c: 10 slots, 0 of them have run; 10 will run" in messages_of(page)
    assert Job.objects.count() == 10
    assert OperatorAction.objects.get().target["rate"] == 10
    wrong = command(admin_client, definition, "backfill", **{**values, "rate": "0"})
    assert "is not 0.001 to 1000" in wrong.text


def test_who_may_not_change_definitions_is_refused_and_that_is_recorded(here: Connection) -> None:
    definition = define()
    client = operator_with("view_crondefinition")
    assert command(client, definition, "pause", confirmed="1").status_code == 403
    assert OperatorAction.objects.get().skipped == {"denied": 1}
    definition.refresh_from_db()
    assert definition.enabled
