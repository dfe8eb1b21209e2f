from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from jobs import clock
from jobs.partitions import PARENTS, ensure, read_days, wanted_days
from tests.factories import schedule

Connection = psycopg.Connection[Any]
OURS = "SELECT count(*) FROM pg_class WHERE relname LIKE 'jobs\\_%' AND relkind IN ('r', 'p', 'v')"
FUNCTIONS = "SELECT count(*) FROM pg_proc WHERE proname LIKE 'jobs\\_%'"


def count(connection: Connection, statement: Any) -> int:
    (number,) = connection.execute(statement).fetchone() or (0,)
    return int(number)


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_they_go_back_to_nothing_and_forward_again(connection: Connection) -> None:
    assert count(connection, OURS) > 40
    assert count(connection, FUNCTIONS) == 3
    call_command("migrate", "jobs", "zero", verbosity=0)
    assert count(connection, OURS) == 0
    assert count(connection, FUNCTIONS) == 0
    call_command("migrate", "jobs", verbosity=0)
    assert set(read_days(connection)) == set()
    ensure(wanted_days(clock.now())[:3])
    assert all(leaves.complete for leaves in read_days(connection).values())
    assert schedule().state == "queued"
    executor = MigrationExecutor(connections["default"])
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []


@pytest.mark.django_db
@pytest.mark.parametrize("parent", PARENTS)
def test_the_big_tables_are_partitioned_and_have_no_default_partition(here: Connection, parent: str) -> None:
    (strategy, default) = here.execute(
        "SELECT partstrat, partdefid FROM pg_partitioned_table WHERE partrelid = %s::regclass", [parent]
    ).fetchone() or (None, None)
    assert (strategy, default) == ("r", 0)


@pytest.mark.django_db
def test_no_foreign_key_of_the_database_points_to_a_big_table(here: Connection) -> None:
    found = here.execute(
        "SELECT conname FROM pg_constraint WHERE contype = 'f' AND confrelid = ANY(%s::regclass[])",
        [list(PARENTS)],
    ).fetchall()
    assert found == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "least", "value"),
    [
        *(
            ("timestamp with time zone", 30, text)
            for text in ("infinity", "-infinity", "294000-01-01 00:00Z")
        ),
        *(("interval", 5, text) for text in ("11 years", "-1 second", "infinity")),
    ],
)
def test_dx_03_no_table_takes_a_time_that_no_datetime_holds(
    here: Connection, kind: str, least: int, value: str
) -> None:
    """Each column of each table that is not partitioned; of those a CHECK on the id sees to it."""
    if (kind, value) == ("interval", "infinity") and here.info.server_version < 170000:
        value = "178000000 years"  # all are finite before PostgreSQL 17
    columns = here.execute(
        "SELECT table_name, column_name FROM information_schema.columns JOIN pg_class ON relname = table_name "
        "WHERE starts_with(table_name, 'jobs_') AND relkind = 'r' AND NOT relispartition AND data_type = %s",
        [kind],
    ).fetchall()
    assert len(columns) > least
    rules = dict(
        here.execute(
            "SELECT conrelid::regclass::text, pg_get_expr(conbin, conrelid) FROM pg_constraint "
            "WHERE conname LIKE '%\\_times'"
        ).fetchall()
    )
    for table, column in columns:
        row: Any = here.execute(
            f"SELECT {rules[table]} FROM (SELECT (jsonb_populate_record(NULL::{table}, jsonb_build_object(%s::text, %s::text))).*) made",
            [column, value],
        ).fetchone()
        assert row == (False,), (table, column)
