"""The application's role reads and writes rows and nothing else; the reading role reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from psycopg import errors, sql

from dispatch.dispatcher import Dispatcher
from jobs import clock
from jobs.clock import DatabaseClock
from jobs.errors import DayMissing
from jobs.grants import grants
from jobs.ids import first_id
from jobs.models import Job, OperatorAction
from jobs.partitions import PARENTS, day_of
from jobs.results import Completed
from jobs.sql import leaf
from jobs.states import JobState
from tests import application
from tests.factories import claim, finish, process, schedule

Connection = psycopg.Connection[Any]
APPLICATION, READER = "test grants app", "test grants reader"
HOUR = timedelta(hours=1)


@pytest.fixture
def roles(here: Connection) -> Connection:
    for role in (APPLICATION, READER):
        here.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))
    for statement in grants(here, APPLICATION, READER):
        here.execute(statement.encode())
    return here


@contextmanager
def acting_as(here: Connection, role: str) -> Iterator[None]:
    here.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role)))
    yield
    here.execute("RESET ROLE")


def refused(here: Connection, statement: str) -> None:
    here.execute("SAVEPOINT refused")
    with pytest.raises(errors.InsufficientPrivilege):
        here.execute(statement.encode())
    here.execute("ROLLBACK TO refused")


def test_the_application_does_all_the_work_of_a_job(roles: Connection) -> None:
    here = roles
    with acting_as(here, APPLICATION):
        job = schedule()
        finish(here, claim(here, job, process(here)), Completed(None))
        assert job.state == JobState.COMPLETED
        later = schedule(delay=HOUR)
        assert Dispatcher().run_once(here, DatabaseClock().read(here) + HOUR) == 1
        Job.objects.filter(pk=later.pk).cancel()
        assert later.state == JobState.CANCELLED


def test_what_the_owner_makes_later_is_the_applications_too(roles: Connection) -> None:
    here = roles
    day = day_of(clock.now()) + timedelta(days=200)
    for parent in PARENTS:  # as a day is made, without the lock and the commits
        here.execute(
            sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING ALL)").format(
                sql.Identifier(leaf(parent, day)), sql.Identifier(parent)
            )
        )
    here.execute("CREATE SEQUENCE made_later")
    with acting_as(here, APPLICATION):
        for parent in PARENTS:
            name = sql.Identifier(leaf(parent, day))
            here.execute(sql.SQL("SELECT FROM {} FOR UPDATE").format(name))
            here.execute(sql.SQL("INSERT INTO {0} SELECT * FROM {0}").format(name))
            here.execute(sql.SQL("DELETE FROM {}").format(name))
        here.execute("SELECT nextval('made_later')")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE jobs_mine (id bigint)",
        "ALTER TABLE jobs_queueentry ADD COLUMN mine bigint",
        "DROP TABLE jobs_uniquekey",
        "TRUNCATE jobs_queueentry",
        "CREATE INDEX ON jobs_queueentry (attempt)",
        "CREATE TRIGGER mine BEFORE INSERT ON jobs_queueentry EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "DELETE FROM django_migrations",
        "SELECT pg_read_file('/etc/passwd')",
    ],
)
def test_the_application_has_rows_only(roles: Connection, statement: str) -> None:
    here = roles
    with acting_as(here, APPLICATION):
        refused(here, statement)


def test_a_reader_sees_jobs_and_nobodys_login(roles: Connection) -> None:
    here = roles
    job = schedule()
    with acting_as(here, READER):
        found = here.execute("SELECT id FROM jobs_job WHERE id >= %s", [first_id(job.due_at)]).fetchall()
        assert (job.id,) in found
        for table in ("django_session", "auth_user"):
            refused(here, f"SELECT * FROM {table}")
        for statement in ("DELETE FROM jobs_queueentry", "UPDATE jobs_tenant SET weight = 2"):
            refused(here, statement)


def test_it_is_said_who_cannot_be_bound(roles: Connection) -> None:
    here = roles
    (owner,) = here.execute("SELECT current_user").fetchone() or ("",)
    here.execute('CREATE ROLE "test grants super" SUPERUSER')
    for role, told in [
        ("nobody of this name", "there is no role 'nobody of this name'"),
        (owner, "the owner"),
        ("test grants super", "a superuser"),
    ]:
        for names in ((role, None), (APPLICATION, role)):
            with pytest.raises(ValueError, match=told):
                list(grants(here, *names))


@pytest.fixture
def committed(connection: Connection) -> Iterator[str]:
    """A role of the application that other connections see, too."""
    role = f"test_grants_{connection.info.dbname}"
    application.prepare(connection, role)
    yield role
    connection.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(role)))


def test_a_missing_day_names_the_command_for_the_owner(
    committed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = connections["default"]
    default.close()
    monkeypatch.setitem(default.settings_dict, "USER", committed)
    try:
        with pytest.raises(
            DayMissing, match=r"may not make them; an administrator runs .*managepartitions ensure"
        ):
            schedule(delay=timedelta(days=300))
        assert schedule(delay=HOUR).state == JobState.SCHEDULED
    finally:
        default.close()


def test_before_the_first_migration_it_is_said_what_to_do(here: Connection) -> None:
    here.execute("DROP TABLE django_migrations CASCADE")
    with pytest.raises(ValueError, match="migrate first"):
        list(grants(here, APPLICATION))


def test_the_command_prints_one_statement_a_line(committed: str) -> None:
    out = StringIO()
    call_command("sqlgrants", committed, "--reader", committed, stdout=out)
    lines = out.getvalue().splitlines()
    assert all(line.startswith(("GRANT ", "REVOKE ", "ALTER ")) and line.endswith(";") for line in lines)
    assert len(lines) == 10
    with pytest.raises(CommandError, match="there is no role 'nobody'"):
        call_command("sqlgrants", "nobody")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE jobs_operatoraction SET reason = 'x'",
        "DELETE FROM jobs_operatoraction",
        "TRUNCATE jobs_operatoraction",
        "DROP TRIGGER jobs_operatoraction_kept ON jobs_operatoraction",
        "ALTER TABLE jobs_operatoraction DISABLE TRIGGER ALL",
    ],
)
def test_the_application_adds_to_the_audit_and_changes_nothing_in_it(
    roles: Connection, statement: str
) -> None:
    with acting_as(roles, APPLICATION):
        OperatorAction.objects.create(verb="cancel", actor_name="x")
        refused(roles, statement)
    assert OperatorAction.objects.get().reason == ""
