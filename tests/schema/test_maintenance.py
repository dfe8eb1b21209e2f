"""What stands in the way of a round of upkeep, what a round says, and what it leaves for the next."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from psycopg import sql

from jobs import clock, db
from jobs.ids import new_id
from jobs.partitions import PARENTS, Step, bounds, expire, plan, read_days, seal
from jobs.sql import leaf
from tests.schema.days import WAITING_ENTRY, ended, exists, expires, expiry, names, waiting

pytestmark = pytest.mark.usefixtures("transactional_db")
Connection = psycopg.Connection[Any]


def test_a_half_dropped_day_that_is_within_the_retention_again_is_put_together(
    connection: Connection, old: date
) -> None:
    job = ended(connection, old)
    for parent in ("jobs_outcome", "jobs_job"):
        connection.execute(sql.SQL("ALTER TABLE {} DETACH PARTITION {}").format(*names(parent, old)))
    expire(clock.now())
    assert read_days(connection)[old].complete
    assert job.state == "failed"


def test_a_detach_that_was_interrupted_is_finalized_first(connection: Connection, old: date) -> None:
    job = ended(connection, old)
    with db.connect(name="punctual test") as reader, reader.transaction(force_rollback=True):
        reader.execute("SELECT count(*) FROM jobs_outcome")
        connection.execute("SET statement_timeout = '100ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(
                sql.SQL("ALTER TABLE {} DETACH PARTITION {} CONCURRENTLY").format(*names("jobs_outcome", old))
            )
    connection.execute("RESET statement_timeout")
    assert read_days(connection)[old].pending == {"jobs_outcome"}
    expire(clock.now())
    assert read_days(connection)[old].complete
    assert job.state == "failed"


def test_a_long_transaction_on_a_table_is_reported_and_waited_for_in_another_round(
    connection: Connection, old: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(connection, old)
    monkeypatch.setattr(expiry, "LONG_TRANSACTION", timedelta())
    with db.connect(name="punctual test") as reader, reader.transaction(force_rollback=True):
        reader.execute("SELECT count(*) FROM jobs_outcome")
        report = expire(expires(old))
        assert (
            report.blocked[old]
            == f"jobs_outcome: in use by a long transaction of pid {reader.info.backend_pid}"
        )
        assert read_days(connection)[old].complete
    assert old in expire(expires(old)).dropped


def test_who_comes_second_does_nothing(connection: Connection, old: date) -> None:
    connection.execute("SELECT pg_advisory_lock(%s, 0)", [expiry.LOCK_CLASS])
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


def test_the_command_plans_and_expires(
    connection: Connection, old: date, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clock, "now", lambda using="default": expires(old))
    connection.execute(
        WAITING_ENTRY,
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
