"""checkcron: clean after honest work, and every planted breach is found and ends with status 1."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.core.management import CommandError, call_command

from jobs import clock
from jobs import reconcile as reconciling
from jobs.ids import derived_id
from jobs.models import CronDefinition, CronTick
from jobs.reconcile import Findings, reconcile
from tests.db.test_ticker import MINUTE, by_sql, define, tick

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)


def since_an_hour(name: str = "c", **options: Any) -> CronDefinition:
    """A definition that was made an hour ago and has been looked at ever since."""
    definition = define(name, since=HOUR, **options)
    by_sql(definition, revised_at=definition.last_slot)
    definition.refresh_from_db()
    return definition


def check(now: datetime | None = None) -> Findings:
    return reconcile((now or clock.now()) - 3 * HOUR, now=now)


@pytest.fixture
def ticked(here: Connection) -> CronDefinition:
    """Ten minutes ago it began; a ticker has been here all the time."""
    definition = since_an_hour()
    start = clock.now() - 10 * MINUTE
    by_sql(definition, last_slot=start, revised_at=start)
    for minutes in range(11):
        tick(here, start + minutes * MINUTE)
    assert check().breaches == []
    return definition


def test_a_ledger_that_was_kept_is_clean(ticked: CronDefinition) -> None:
    found = check()
    assert found.definitions == 1
    assert found.expected == found.outcomes["fired"] == CronTick.objects.count() >= 12
    output = StringIO()
    call_command("checkcron", "--since", "3h", stdout=output)
    assert "clean" in output.getvalue()


def missing(row: CronTick) -> None:
    row.delete()


def doubled(row: CronTick) -> None:
    row.pk = uuid_like(row)
    row.job_id = None
    row.outcome = "merged"
    row.save(force_insert=True)


def doubled_by_a_range(row: CronTick) -> None:
    row.pk = uuid_like(row)
    row.job_id, row.outcome, row.slots, row.last_slot = None, "missed", 2, row.slot + MINUTE
    row.save(force_insert=True)


def wrong_slot(row: CronTick) -> None:
    CronTick.objects.filter(pk=row.pk).update(slot=row.slot + timedelta(seconds=7))


def wrong_count(row: CronTick) -> None:
    CronTick.objects.filter(pk=row.pk).update(slots=2)


def unknown_revision(row: CronTick) -> None:
    CronTick.objects.filter(pk=row.pk).update(revision=9)


def no_job(row: CronTick) -> None:
    CronTick.objects.filter(pk=row.pk).update(job_id=None)


def lost_job(row: CronTick) -> None:
    CronTick.objects.filter(pk=row.pk).update(job_id=uuid_like(row))


def job_of_another_slot(row: CronTick) -> None:
    other = CronTick.objects.exclude(pk=row.pk).order_by("slot")[0]
    CronTick.objects.filter(pk=row.pk).update(job_id=other.job_id)


def uuid_like(row: CronTick) -> Any:
    return derived_id(row.slot, uuid4())


BREACHES: list[tuple[Callable[[CronTick], None], str]] = [
    (missing, "missing: "), (missing, "is in no row of the ledger"), (doubled, "doubled: "),
    (doubled_by_a_range, "doubled: "), (wrong_slot, "wrong: "), (wrong_slot, "missing: "), (wrong_count, "says 2 slots"),
    (unknown_revision, "which never was"), (no_job, "names no job"), (lost_job, "which does not exist"),
    (job_of_another_slot, "which is of slot"),
]  # fmt: skip


@pytest.mark.parametrize(("plant", "told"), BREACHES, ids=lambda each: getattr(each, "__name__", each))
def test_a_planted_breach_is_found(
    ticked: CronDefinition, plant: Callable[[CronTick], None], told: str
) -> None:
    plant(CronTick.objects.order_by("slot")[5])
    assert any(told in breach for breach in check().breaches), check().breaches
    errors = StringIO()
    with pytest.raises(CommandError, match="breaches of the ledger"):
        call_command("checkcron", "--since", "3h", stdout=StringIO(), stderr=errors)
    assert told in errors.getvalue()


def test_a_ticker_that_has_died_is_missed(here: Connection) -> None:
    since_an_hour()
    assert 58 <= len([breach for breach in check().breaches if breach.startswith("missing")]) <= 60
    tick(here)
    assert check().breaches == []


def test_edits_pauses_and_a_deletion_are_reconciled(here: Connection) -> None:
    definition = since_an_hour()
    tick(here)
    by_sql(definition, expression="*/2 * * * *")
    tick(here)
    definition.refresh_from_db()
    definition.pause("maintenance")
    definition.resume()
    tick(here)
    definition.delete()
    tick(here)
    found = check()
    assert found.breaches == []
    assert found.outcomes["replaced"] >= 1


def test_a_broken_definition_is_a_note_and_its_slots_are_told_when_it_is_mended(here: Connection) -> None:
    definition = since_an_hour()
    by_sql(definition, payload=[1])
    revised = clock.now() - 10 * MINUTE
    by_sql(definition, last_slot=revised, revised_at=revised)
    tick(here)
    assert any("does not fire" in note for note in check().notes)
    by_sql(definition, payload={})
    tick(here)
    found = check()
    assert found.breaches == []
    assert found.outcomes["missed"] >= 10


@pytest.mark.parametrize("text", ["yesterday", "5", "7w"])
def test_an_age_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="neither a time"):
        call_command("checkcron", "--since", text)


def test_definitions_with_many_rows_are_looked_at_in_smaller_pieces(
    here: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day of one that fires each second has 86,400."""
    start = clock.now() - 10 * MINUTE
    for n in range(5):
        definition = since_an_hour(f"c{n}")
        by_sql(definition, last_slot=start, revised_at=start)
    for minutes in range(11):
        tick(here, start + minutes * MINUTE)
    CronTick.objects.order_by("pk")[3].delete()
    monkeypatch.setattr(reconciling, "ROWS", 15)
    asked = list[int]()
    real = reconciling._look

    def look(chunk: Any, *args: Any) -> set[str]:
        asked.append(len(chunk))
        return real(chunk, *args)

    monkeypatch.setattr(reconciling, "_look", look)
    found = check()
    assert max(asked) == 1
    assert [breach.split(":")[0] for breach in found.breaches] == ["missing", "job"]
    assert found.expected == sum(found.outcomes.values()) + 1


def test_more_breaches_than_anybody_reads_end_the_search(
    ticked: CronDefinition, monkeypatch: pytest.MonkeyPatch
) -> None:
    CronTick.objects.all().delete()
    monkeypatch.setattr(reconciling, "MOST", 3)
    breaches = check().breaches
    assert len(breaches) > 3
    assert breaches[-1].endswith("were not looked at")
    assert not any(breach.startswith("job:") for breach in breaches)
