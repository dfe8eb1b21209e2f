"""Commands that cannot start say why in one sentence and exit with an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from psycopg import sql

from tests.commands import Commands
from tests.racing import Connection

pytestmark = pytest.mark.process
BOTH = ["runworker", "rundispatcher"]


def fails(commands: Commands, *arguments: str, **env: str) -> str:
    """The one line that it says."""
    command = commands.start(*arguments, **env)
    assert command.wait() not in (0, None)
    assert "Traceback" not in command.log
    return command.log.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("runworker --processes 0", "0 is not positive"),
        ("runworker --threads many", "'many' is not a whole number"),
        ("runworker --queues ,", "is empty; give names separated by commas"),
        ("runworker --database nope", "there is no database 'nope' in the settings"),
        (
            "rundispatcher --only dispatch,sleep",
            "--only knows dispatch, admit, hold, tick, rescue, upkeep, rollup, operate, not sleep",
        ),
    ],
)
def test_a_wrong_argument_is_named(line: str, sentence: str, connection: Connection) -> None:
    with pytest.raises(CommandError) as raised:
        call_command(*line.split())
    assert sentence in str(raised.value)


def test_a_wrong_argument_ends_the_command_with_an_error(commands: Commands) -> None:
    assert "0 is not positive" in fails(commands, "runworker", "--processes", "0")


@pytest.mark.parametrize("command", BOTH)
def test_a_database_that_cannot_be_reached_is_named(command: str, commands: Commands, tmp_path: Path) -> None:
    said = fails(commands, command, DATABASE_URL=f"postgresql://x@/nothing?host={tmp_path}")
    assert "the database 'default' cannot be reached" in said


@pytest.mark.parametrize("command", BOTH)
def test_a_database_that_is_not_migrated_is_named_with_the_command_that_helps(
    command: str, commands: Commands, connection: Connection
) -> None:
    name = f"{connection.info.dbname}_empty"
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
    connection.execute(drop)
    connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
    try:
        url = commands.env["DATABASE_URL"].replace(f"/{connection.info.dbname}?", f"/{name}?")
        said = fails(commands, command, DATABASE_URL=url)
    finally:
        connection.execute(drop)
    assert "is not migrated; run `manage.py migrate --database default`" in said


@pytest.mark.parametrize("way", ["exit", "error"])
def test_bx_01_an_app_whose_tasks_cannot_be_imported_is_named(
    way: str, commands: Commands, tmp_path: Path
) -> None:
    """Even one that calls sys.exit(0): a worker without its handlers must not end as if all were well."""
    (tmp_path / "quitter").mkdir()
    (tmp_path / "quitter" / "__init__.py").touch()
    text = "import sys\nsys.exit(0)\n" if way == "exit" else "raise ValueError('no')\n"
    (tmp_path / "quitter" / "tasks.py").write_text(text)
    command = commands.start("runworker", PYTHONPATH=str(tmp_path), SCHEDULER_APPS="quitter")
    assert command.wait() not in (0, None)
    assert "quitter" in command.log


def test_a_database_that_commits_nothing_by_itself_is_refused(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connections["default"].settings_dict, "AUTOCOMMIT", False)
    for command in BOTH:
        with pytest.raises(CommandError, match="has AUTOCOMMIT off"):
            call_command(command)
