from __future__ import annotations

import ast
import logging
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler_project.logs import FIELD_KEPT, LineFormatter

ROOT = Path(__file__).resolve().parents[2]


def line(message: str, *args: object, exc_info: object = None, **extra: object) -> str:
    record = logging.makeLogRecord(
        {
            "name": "jobs.test",
            "levelname": "INFO",
            "created": 0.5,
            "msg": message,
            "args": args,
            "exc_info": exc_info,
        }
    )
    vars(record).update(extra)
    return LineFormatter().format(record)


def test_a_record_is_one_line_of_fields() -> None:
    due = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    assert line("claimed", jobs=3, took=0.1234567891, due_at=due) == (
        "ts=1970-01-01T00:00:00.500+00:00 level=info logger=jobs.test event=claimed "
        "jobs=3 took=0.123457 due_at=2026-01-02T03:04:05+00:00"
    )


def test_what_is_not_one_plain_word_is_quoted() -> None:
    said = line("%s jobs", 7, note='say "yes"\nor=no', empty="", where="Zürich", nasty="a\x1b[31m\u2028b")

    assert "\n" not in said
    assert "\x1b" not in said
    assert "\u2028" not in said
    assert 'event="7 jobs"' in said
    assert 'note="say \\"yes\\"\\nor=no"' in said
    assert 'empty=""' in said
    assert "where=Zürich" in said
    assert len(shlex.split(said)) == 8


def test_a_traceback_stays_in_the_line() -> None:
    try:
        raise ValueError("no\nway")
    except ValueError as error:
        said = line("handler failed", exc_info=(type(error), error, error.__traceback__))

    assert "\n" not in said
    assert 'error="Traceback' in said
    assert "ValueError: no\\nway" in said


def test_a_field_is_bounded_and_says_what_is_missing() -> None:
    half = FIELD_KEPT // 2
    said = line("failed", error="e" * (half + 12_345) + "z" * half, fine="f" * FIELD_KEPT)

    assert f'error="{"e" * half} … 12,345 characters … {"z" * half}"' in said
    assert said.endswith(f" fine={'f' * FIELD_KEPT}")


RESERVED = {*logging.makeLogRecord({}).__dict__, "message", "asctime"}


@pytest.mark.parametrize(
    "path",
    sorted(path for app in ("jobs", "dispatch") for path in (ROOT / app).rglob("*.py")),
    ids=lambda path: path.stem,
)
def test_no_line_has_a_field_that_logging_keeps_for_itself(path: Path) -> None:
    """It would raise where something is told that has gone wrong."""
    tree = ast.parse(path.read_text("utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    extras = [word.value for call in calls for word in call.keywords if word.arg == "extra"]
    names = {extra.id for extra in extras if isinstance(extra, ast.Name)}
    extras += [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in names
    ]
    keys = [key for extra in extras if isinstance(extra, ast.Dict) for key in extra.keys]
    assert not RESERVED & {key.value for key in keys if isinstance(key, ast.Constant)}
