"""Making days. Each test works in a copy of the database, on days of its own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from itertools import count
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from psycopg import sql

from jobs import clock, db
from jobs.errors import DayMissing
from jobs.models import Job
from jobs.partitions import PARENTS, ensure, expire, plan, read_days, wanted_days
from jobs.sql import leaf
from tests.factories import schedule

pytestmark = pytest.mark.usefixtures("transactional_db")
Connection = psycopg.Connection[Any]

_numbers = count(40)


@pytest.fixture
def day() -> date:
    """A day of the coming months that no other test has touched."""
    return datetime.now(UTC).date() + timedelta(days=next(_numbers))


def detach(connection: Connection, parent: str, day: date) -> None:
    statement = sql.SQL("ALTER TABLE {} DETACH PARTITION {}")
    connection.execute(statement.format(sql.Identifier(parent), sql.Identifier(leaf(parent, day))))


def test_a_day_gets_all_its_leaves_once(connection: Connection, day: date) -> None:
    assert day not in read_days(connection)
    assert ensure([day, day]) == [day]
    assert read_days(connection)[day].attached == set(PARENTS)
    assert ensure([day]) == []


def test_a_day_is_utc_whatever_the_session_says(
    connection: Connection, day: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = db.connect

    def elsewhere(*args: Any, **kwargs: Any) -> Connection:
        connection = real(*args, **kwargs)
        connection.execute("SET TIME ZONE 'Pacific/Kiritimati'")
        return connection

    monkeypatch.setattr(db, "connect", elsewhere)
    ensure([day])
    for parent in PARENTS:
        (text,) = connection.execute(
            "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = %s", [leaf(parent, day)]
        ).fetchone() or ("",)
        start, end = (f"{each} 00:00:00+00" for each in (day, day + timedelta(days=1)))
        assert text == f"FOR VALUES FROM ('{start}') TO ('{end}')"


def test_leaves_have_the_indexes_of_their_parent_and_their_own_storage(
    connection: Connection, day: date
) -> None:
    ensure([day])
    for parent in PARENTS:
        indexes = [
            connection.execute(
                "SELECT count(*) FROM pg_index WHERE indrelid = %s::regclass", [name]
            ).fetchone()
            for name in (parent, leaf(parent, day))
        ]
        assert indexes[0] == indexes[1]
        (options,) = connection.execute(
            "SELECT reloptions FROM pg_class WHERE relname = %s", [leaf(parent, day)]
        ).fetchone() or ([],)
        assert "autovacuum_freeze_min_age=0" in options
        assert ("vacuum_truncate=off" in options) is (parent == "jobs_timer")


def test_a_leaf_that_was_left_detached_is_attached_again_with_its_rows(
    connection: Connection, day: date
) -> None:
    due = datetime.combine(day, datetime.min.time(), UTC)
    job = schedule(due_at=due)
    for parent in ("jobs_job", "jobs_timer"):
        detach(connection, parent, day)
    assert not Job.objects.filter(pk=job.pk).exists()
    assert ensure([day]) == [day]
    assert Job.objects.get(pk=job.pk).state == "scheduled"


@pytest.mark.parametrize("parent", PARENTS)
def test_a_day_that_lacks_a_leaf_is_completed(connection: Connection, day: date, parent: str) -> None:
    ensure([day])
    connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(leaf(parent, day))))
    assert not read_days(connection)[day].complete
    assert ensure([day]) == [day]
    assert read_days(connection)[day].complete


def test_no_more_than_the_most_days_exist_and_those_that_do_can_still_be_completed(
    connection: Connection, day: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure([day])
    detach(connection, "jobs_timer", day)
    monkeypatch.setattr(import_module("jobs.partitions.ensure"), "MAX_DAYS", len(read_days(connection)))
    with pytest.raises(DayMissing, match=r"days exist already.*managepartitions expire"):
        ensure([day + timedelta(days=400)])
    assert ensure([day]) == [day]


def test_a_job_due_on_a_day_that_is_not_there_makes_it_before_its_first_write(
    connection: Connection, day: date
) -> None:
    job = schedule(due_at=datetime.combine(day, datetime.min.time(), UTC) + timedelta(hours=23, minutes=59))
    assert read_days(connection)[day].complete
    assert job.state == "scheduled"


@pytest.fixture
def limited_role(connection: Connection) -> Iterator[str]:
    """Django's user becomes a role that may read and write, and own nothing."""
    settings, role = connections["default"].settings_dict, "punctual_test_dml"
    connection.execute(
        f"DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN;"
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role};"
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}"
    )
    connections["default"].close()
    before = settings["OPTIONS"].get("options", "")
    settings["OPTIONS"]["options"] = f"{before} -c role={role}"
    try:
        yield role
    finally:
        settings["OPTIONS"]["options"] = before
        connections["default"].close()
        connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


@pytest.mark.usefixtures("limited_role")
def test_a_role_that_may_not_make_days_schedules_into_those_that_are_there(
    connection: Connection, day: date
) -> None:
    assert schedule().state == "queued"
    with pytest.raises(DayMissing, match=f"managepartitions ensure --day {day}"):
        schedule(due_at=datetime.combine(day, datetime.min.time(), UTC))
    assert day not in read_days(connection)


def test_a_lock_that_is_held_for_long_is_a_clear_error(
    connection: Connection, day: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("jobs.partitions.ensure"), "TRIES", 1)
    with connection.transaction(force_rollback=True):
        connection.execute("LOCK TABLE jobs_timer IN SHARE UPDATE EXCLUSIVE MODE")
        with pytest.raises(DayMissing, match="held a lock"):
            ensure([day])
    assert day not in read_days(connection), "all leaves of a day come together"
    assert ensure([day]) == [day]


def test_days_are_made_beside_callers_who_write(connection: Connection, day: date) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute("INSERT INTO jobs_timer SELECT * FROM jobs_timer LIMIT 0")
        connection.execute("SELECT count(*) FROM jobs_job")
        assert ensure([day]) == [day]
        connection.execute("SELECT count(*) FROM jobs_job")


def test_the_command_makes_days_and_says_what_it_did(
    connection: Connection, day: date, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("managepartitions", "ensure", day=[day])
    assert capsys.readouterr().out == f"made 1 days: {day} to {day}\n"
    call_command("managepartitions", "ensure", day=[day])
    assert capsys.readouterr().out == "made 0 days\n"
    assert read_days(connection)[day].complete


@pytest.mark.parametrize("wrong", [date(202, 12, 31), date(1969, 12, 31), date(2062, 1, 1), date.max])
def test_the_command_makes_no_day_of_a_year_with_a_typo(connection: Connection, wrong: date) -> None:
    with pytest.raises(CommandError, match=f"no job can be due on {wrong}"):
        call_command("managepartitions", "ensure", day=[wrong])
    assert wrong not in read_days(connection)


def test_a_day_before_all_that_can_be_stands_in_no_other_days_way(connection: Connection) -> None:
    day = date(1969, 12, 31)
    ensure([day])
    now = clock.now()
    assert [step.action for step in plan(now).steps if step.day == day] == ["drop"]
    assert day in expire(now).dropped


def test_days_ahead_are_yesterday_today_and_the_days_of_the_setting() -> None:
    now = datetime(2030, 3, 31, 0, 30, tzinfo=UTC)
    days = wanted_days(now)
    assert (days[0], days[-1], len(days)) == (date(2030, 3, 30), date(2030, 5, 5), 37)
