"""Whoever changes a cron definition, by whatever path: what was written ahead is withdrawn and nothing fires at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connection

from dispatch.ticker import Ticker
from jobs import clock, declared
from jobs.models import CronDefinition, CronTick, Job
from jobs.registry import CronDeclaration, cron, job_type, registry
from jobs.states import JobState
from tests.db.test_ticker import AHEAD, define, expected, slots, soon, tick
from tests.factories import claim, come_due, process

Connection = psycopg.Connection[Any]
Change = Callable[[CronDefinition], Any]


def save(definition: CronDefinition, **changes: Any) -> None:
    for name, value in changes.items():
        setattr(definition, name, value)
    definition.save()


def update(definition: CronDefinition, **changes: Any) -> None:
    CronDefinition.objects.filter(pk=definition.pk).update(**changes)


def raw(definition: CronDefinition, **changes: Any) -> None:
    ((name, value),) = changes.items()
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE jobs_crondefinition SET {name} = %s WHERE id = %s", [value, definition.pk])


PATHS = [save, update, raw]
EDITS: list[dict[str, Any]] = [
    {"enabled": False}, {"expression": "*/2 * * * *"}, {"timezone": "Asia/Tokyo"}, {"priority": 5}, {"queue": "other"},
    {"job_type": "test.echo"}, {"max_attempts": 3}, {"dst": "literal"},
]  # fmt: skip


@pytest.mark.parametrize("change", EDITS, ids=lambda change: next(iter(change)))
@pytest.mark.parametrize("path", PATHS)
def test_a_change_withdraws_what_was_written_ahead(
    here: Connection, path: Callable[..., None], change: dict[str, Any]
) -> None:
    definition = define(expression=soon())
    tick(here)
    definition.refresh_from_db()
    jobs = list(Job.objects.all())
    path(definition, **change)
    for job in jobs:
        assert job.state is JobState.CANCELLED
    assert set(CronTick.objects.values_list("outcome", flat=True)) == {"replaced"}
    definition.refresh_from_db()
    assert (definition.revision, definition.next_slot) == (2, None)


@pytest.mark.parametrize("path", PATHS)
def test_a_change_of_the_rule_fires_from_now_on_and_not_at_once(
    here: Connection, path: Callable[..., None]
) -> None:
    definition = define(since=timedelta(hours=3))
    path(definition, expression="* * * * 0-7")
    now = clock.now()
    tick(here, now)
    definition.refresh_from_db()
    told = expected(definition.revised_at, now + AHEAD)
    assert slots(definition, "fired") == told
    missed = CronTick.objects.get(revision=1)
    assert (missed.outcome, missed.reason) == ("missed", "overdue when the definition was changed")
    assert 179 <= missed.slots <= 181
    assert Job.objects.count() == len(told)


@pytest.mark.parametrize("path", PATHS)
def test_enabling_again_fires_nothing_of_the_meantime(here: Connection, path: Callable[..., None]) -> None:
    definition = define(enabled=False, since=timedelta(hours=3))
    path(definition, enabled=True)
    now = clock.now()
    tick(here, now)
    definition.refresh_from_db()
    assert slots(definition, "fired") == expected(definition.revised_at, now + AHEAD)
    paused = CronTick.objects.get(revision=1)
    assert (paused.outcome, paused.reason, paused.job_id) == ("skipped", "paused", None)
    assert 179 <= paused.slots <= 181


def test_the_same_slot_can_be_fired_by_the_new_rule(here: Connection) -> None:
    definition = define(expression=soon())
    now = clock.now()
    tick(here, now)
    before = slots(definition)
    update(definition, payload={"new": True})
    tick(here, now)
    assert slots(definition, "replaced") == before
    assert slots(definition, "fired") == before
    assert {job.payload.get("new") for job in Job.objects.all() if job.state is not JobState.CANCELLED} == {
        True
    }


@pytest.mark.parametrize("how", ["orm", "queryset", "sql"])
def test_a_deleted_definition_withdraws_what_was_written_ahead(here: Connection, how: str) -> None:
    definition = define(expression=soon())
    tick(here)
    if how == "orm":
        definition.delete()
    elif how == "queryset":
        CronDefinition.objects.all().delete()
    else:
        here.execute("DELETE FROM jobs_crondefinition")
    assert {job.state for job in Job.objects.all()} == {JobState.CANCELLED}


def test_what_is_not_the_rule_withdraws_nothing(here: Connection) -> None:
    definition = define()
    tick(here)
    definition.refresh_from_db()
    save(definition, name="another name", source="elsewhere")
    definition.refresh_from_db()
    assert (definition.revision, definition.next_slot is None) == (1, False)
    assert JobState.CANCELLED not in {job.state for job in Job.objects.all()}


def test_what_runs_already_goes_on(here: Connection) -> None:
    definition = define()
    now = clock.now()
    tick(here, now)
    first = Job.objects.order_by("due_at")[0]
    here.execute("DELETE FROM jobs_timer WHERE job_id = %s", [first.id])
    here.execute(
        "INSERT INTO jobs_queueentry (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, "
        "max_attempts, crashes, cancel_requested) VALUES (%s, %s, now(), %s, %s, %s, 0, 0, 3, 0, false) "
        "ON CONFLICT (job_id) DO UPDATE SET run_at = now()",
        [first.id, first.due_at, first.tenant_id, first.queue, first.job_type],
    )
    come_due(here)
    claim(here, first, process(here))
    update(definition, enabled=False)
    assert first.state is JobState.RUNNING


def declare(**options: Any) -> CronDeclaration:
    return CronDeclaration(expression=options.pop("expression", "0 1 * * *"), name="declared", **options)


@pytest.fixture
def crons(monkeypatch: pytest.MonkeyPatch) -> list[CronDeclaration]:
    """What `test.noop` declares."""
    known = registry.get("test.noop")
    assert known
    declared_here: list[CronDeclaration] = [declare()]
    monkeypatch.setitem(known.__dict__, "crons", declared_here)
    return declared_here


def test_what_code_declares_becomes_a_definition_once(here: Connection, crons: list[CronDeclaration]) -> None:
    assert [declared.sync(), declared.sync()] == [1, 0]
    definition = CronDefinition.objects.get(name="declared")
    assert (definition.expression, definition.job_type, definition.tenant.slug) == (
        "0 1 * * *",
        "test.noop",
        "default",
    )
    assert definition.source == "tests.handlers.tasks.noop"


def test_an_operators_edit_stays_until_the_code_changes(
    here: Connection, crons: list[CronDeclaration]
) -> None:
    declared.sync()
    assert declared.overridden(CronDefinition.objects.get(name="declared")) == []
    CronDefinition.objects.filter(name="declared").update(expression="0 5 * * *", enabled=False)
    assert declared.sync() == 0
    edited = CronDefinition.objects.get(name="declared")
    assert (edited.expression, declared.overridden(edited)) == ("0 5 * * *", ["expression"])
    crons[0] = declare(expression="0 2 * * *")
    assert declared.sync() == 1
    definition = CronDefinition.objects.get(name="declared")
    assert (definition.expression, definition.enabled) == ("0 2 * * *", False)
    assert declared.overridden(definition) == []


@pytest.mark.parametrize(
    "payload", [{"a": float("nan")}, {"a": "\0"}, {"a": UUID(int=7)}, [1]], ids=["nan", "nul", "uuid", "list"]
)
def test_pl_06_a_declared_payload_that_cannot_be_stored_stands_in_nobodys_way(
    here: Connection, crons: list[CronDeclaration], payload: Any
) -> None:
    crons[0] = declare(payload=payload)
    assert declared.sync() == 0
    crons[0] = declare(payload={"fine": 1})
    assert declared.sync() == 1
    crons[0] = declare(payload=payload)
    assert declared.sync() == 0
    assert CronDefinition.objects.get(name="declared").payload == {"fine": 1}


@pytest.mark.parametrize("options", [{"spread": 5}, {"spread": None}, {"overlap": "x" * 20}], ids=str)
def test_pl_06_a_declared_rule_that_cannot_be_stored_stands_in_nobodys_way(
    here: Connection, crons: list[CronDeclaration], options: dict[str, Any]
) -> None:
    crons[:] = [declare(**options), CronDeclaration(expression="0 1 * * *", name="another")]
    assert declared.sync() == 1
    assert CronDefinition.objects.get().name == "another"


@dataclass
class Odd:
    numbers: set[int]


def test_pl_06_a_declared_cron_of_a_payload_that_none_can_be_stands_in_nobodys_way(here: Connection) -> None:
    @cron("0 1 * * *", payload={"numbers": [1]})
    @job_type("test.odd")
    def odd(context: Any, payload: Odd) -> None:
        """Of a payload that JSON does not carry."""

    try:
        assert declared.sync() == 0
    finally:
        registry.remove("test.odd")


def test_what_code_declares_no_more_stays(here: Connection, crons: list[CronDeclaration]) -> None:
    declared.sync()
    crons.clear()
    assert declared.sync() == 0
    assert CronDefinition.objects.filter(name="declared").exists()


def test_a_ticker_writes_what_is_declared_before_its_first_pass(
    here: Connection, crons: list[CronDeclaration]
) -> None:
    crons[0] = declare(expression="* * * * *")
    Ticker().run_once(here, clock.now())
    assert slots(CronDefinition.objects.get(name="declared"))
