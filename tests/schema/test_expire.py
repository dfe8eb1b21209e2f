"""Dropping days: never with an unfinished job, and never half. Each test has an old day of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from importlib import import_module
from itertools import count
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from psycopg import sql
from pytest_django import Settings

from jobs import clock, db
from jobs.ids import new_id
from jobs.models import Job
from jobs.partitions import PARENTS, Step, bounds, day_of, ensure, expire, plan, read_days, seal
from jobs.sql import leaf
from tests.factories import claim, failed, finish, process, schedule

pytestmark = pytest.mark.usefixtures("transactional_db")
Connection = psycopg.Connection[Any]

RETENTION = timedelta(days=60)
module = import_module("jobs.partitions.expire")
_numbers = count(8)


@pytest.fixture
def old(connection: Connection, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[date]:
    """A day of the past that may still get jobs and that no other test has touched."""
    settings.SCHEDULER = {**settings.SCHEDULER, "retention": RETENTION}
    monkeypatch.setattr(module, "LONG_TRANSACTION", timedelta(minutes=5))
    day = day_of(clock.now()) - timedelta(days=next(_numbers))
    ensure([day])
    yield day
    connection.execute("TRUNCATE jobs_queueentry")


def expires(day: date) -> datetime:
    """A time at which this day has just become too old."""
    return bounds(day)[1] + RETENTION


def waiting(day: date) -> Job:
    return schedule(due_at=bounds(day)[0] + timedelta(hours=12))


def ended(connection: Connection, day: date) -> Job:
    job = waiting(day)
    finish(connection, claim(connection, job, process(connection)), failed(final=True))
    return job


def exists(connection: Connection, day: date) -> bool:
    return day in read_days(connection)


def test_a_day_is_dropped_when_it_is_past_the_retention_and_all_its_jobs_have_ended(
    connection: Connection, old: date
) -> None:
    job = ended(connection, old)
    assert old not in expire(expires(old) - timedelta(seconds=1)).dropped
    assert Job.objects.filter(pk=job.pk).exists()
    assert old in expire(expires(old)).dropped
    assert not exists(connection, old)
    assert not Job.objects.filter(pk=job.pk).exists()


@pytest.mark.parametrize("place", ["entry", "retrying entry", "timer"])
def test_a_day_with_an_unfinished_job_stays(connection: Connection, old: date, place: str) -> None:
    job = waiting(old)
    if place == "timer":
        connection.execute(
            "WITH gone AS (DELETE FROM jobs_queueentry RETURNING *) INSERT INTO jobs_timer (job_id, due_at, "
            "tenant_id, queue, job_type, priority, max_attempts) SELECT job_id, due_at, tenant_id, queue, job_type, "
            "priority, max_attempts FROM gone"
        )
    elif place == "retrying entry":
        finish(connection, claim(connection, job, process(connection)), failed())
    report = expire(expires(old))
    scheduled, queued = (1, 0) if place == "timer" else (0, 1)
    assert report.kept[old] == f"{scheduled} scheduled and {queued} queued jobs have not ended"
    assert read_days(connection)[old].complete
    assert Job.objects.filter(pk=job.pk).exists()


def interject(monkeypatch: pytest.MonkeyPatch, parent: str, act: Callable[[], None]) -> None:
    """Do something right after the leaf of this parent was detached."""
    real = module._detach

    def detach(connection: Connection, which: str, day: date) -> None:
        real(connection, which, day)
        if which == parent:
            act()

    monkeypatch.setattr(module, "_detach", detach)


def test_a_job_that_comes_back_while_its_day_is_taken_apart_is_seen_by_the_second_look(
    connection: Connection, old: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ended(connection, old)
    entry = (
        "INSERT INTO jobs_queueentry (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, "
        "max_attempts, crashes, cancel_requested) VALUES (%s, %s, now(), 1, 'q', 't', 0, 1, 2, 0, false)"
    )
    interject(monkeypatch, PARENTS[-1], lambda: connection.execute(entry, [job.id, job.due_at]) and None)
    report = expire(expires(old))
    assert old in report.kept
    assert old not in report.dropped
    assert read_days(connection)[old].complete
    assert Job.objects.filter(pk=job.pk).exists()


def test_retry_finds_nothing_once_the_outcome_is_detached_and_the_job_stays_ended(
    connection: Connection, old: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ended(connection, old)
    reports = []
    interject(monkeypatch, "jobs_outcome", lambda: reports.append(Job.objects.filter(pk=job.pk).retry()))
    assert old in expire(expires(old)).dropped
    assert [report.changed for report in reports] == [0]
    (entries,) = connection.execute("SELECT count(*) FROM jobs_queueentry").fetchone() or (None,)
    assert entries == 0


@pytest.mark.parametrize("parent", PARENTS)
def test_what_a_crash_left_half_done_is_ended_by_the_next_round(
    connection: Connection, old: date, monkeypatch: pytest.MonkeyPatch, parent: str
) -> None:
    ended(connection, old)

    def crash() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        interject(during, parent, crash)
        with pytest.raises(KeyboardInterrupt):
            expire(expires(old))
    assert not read_days(connection)[old].complete
    assert old in expire(expires(old)).dropped
    assert not exists(connection, old)


def test_a_half_dropped_day_that_is_within_the_retention_again_is_put_together(
    connection: Connection, old: date
) -> None:
    job = ended(connection, old)
    for parent in ("jobs_outcome", "jobs_job"):
        connection.execute(sql.SQL("ALTER TABLE {} DETACH PARTITION {}").format(*_names(parent, old)))
    expire(clock.now())
    assert read_days(connection)[old].complete
    assert job.state == "failed"


def test_a_detach_that_was_interrupted_is_finalized_first(connection: Connection, old: date) -> None:
    job = ended(connection, old)
    with db.connect(name="punctual test") as reader, reader.transaction(force_rollback=True):
        reader.execute("SELECT count(*) FROM jobs_outcome")
        connection.execute("SET statement_timeout = '100ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(sql.SQL("ALTER TABLE {} DETACH PARTITION {} CONCURRENTLY").format(*_names("jobs_outcome", old)))
    connection.execute("RESET statement_timeout")
    assert read_days(connection)[old].pending == {"jobs_outcome"}
    expire(clock.now())
    assert read_days(connection)[old].complete
    assert job.state == "failed"


def test_a_long_transaction_on_a_table_is_reported_and_waited_for_in_another_round(
    connection: Connection, old: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(connection, old)
    monkeypatch.setattr(module, "LONG_TRANSACTION", timedelta())
    with db.connect(name="punctual test") as reader, reader.transaction(force_rollback=True):
        reader.execute("SELECT count(*) FROM jobs_outcome")
        report = expire(expires(old))
        assert report.blocked[old] == f"jobs_outcome: in use by a long transaction of pid {reader.info.backend_pid}"
        assert read_days(connection)[old].complete
    assert old in expire(expires(old)).dropped


def test_who_comes_second_does_nothing(connection: Connection, old: date) -> None:
    connection.execute("SELECT pg_advisory_lock(%s, 0)", [module.LOCK_CLASS])
    report = expire(expires(old))
    assert (report.dropped, report.kept, report.blocked) == ([], {}, {})
    connection.execute("SELECT pg_advisory_unlock_all()")
    assert old in expire(expires(old)).dropped


def test_the_plan_says_what_would_be_done_and_why(connection: Connection, old: date) -> None:
    waiting(old)
    steps = {step.day: step for step in plan(expires(old)).steps}
    assert steps[old] == Step(old, "keep", "0 scheduled and 1 queued jobs have not ended")
    connection.execute("TRUNCATE jobs_queueentry")
    steps = {step.day: step for step in plan(expires(old)).steps}
    assert steps[old] == Step(old, "drop", "past the retention, all jobs ended")
    connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(leaf("jobs_timer", old))))
    today = {step.day: step.action for step in plan(bounds(old)[0]).steps}
    assert today[old] == "make"
    assert plan(bounds(old)[0]).ready == 0


def test_a_day_that_has_ended_is_vacuumed_once(connection: Connection, old: date) -> None:
    ended(connection, old)
    assert leaf("jobs_job", old) not in seal(bounds(old)[0])
    assert {leaf(parent, old) for parent in PARENTS} <= set(seal(bounds(old)[1]))
    assert seal(bounds(old)[1]) == []
    (frozen,) = connection.execute(
        "SELECT relallvisible = relpages FROM pg_class WHERE relname = %s", [leaf("jobs_job", old)]
    ).fetchone() or (None,)
    assert frozen


def test_the_command_plans_and_expires(
    connection: Connection, old: date, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clock, "now", lambda using="default": expires(old))
    connection.execute(
        "INSERT INTO jobs_queueentry (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, "
        "max_attempts, crashes, cancel_requested) VALUES (%s, %s, now(), 1, 'q', 't', 0, 1, 2, 0, false)",
        [new_id(bounds(old)[0]), bounds(old)[0]],
    )
    call_command("managepartitions", "plan")
    assert f"{old} keep: 0 scheduled and 1 queued jobs have not ended" in capsys.readouterr().out
    call_command("managepartitions", "expire")
    assert f"{old}: 0 scheduled and 1 queued" in capsys.readouterr().out
    connection.execute("TRUNCATE jobs_queueentry")
    call_command("managepartitions", "expire")
    assert capsys.readouterr().out.startswith("dropped ")
    assert not exists(connection, old)


def _names(parent: str, day: date) -> tuple[sql.Identifier, sql.Identifier]:
    return sql.Identifier(parent), sql.Identifier(leaf(parent, day))
