"""The files in jobs/sql: each has one caller, a reason on top, and bounds for every partitioned table it reads."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

import jobs
from jobs import sql

ROOT = Path(jobs.__file__).parents[1]
SQL = ROOT / "jobs" / "sql"
PARTS = {path.stem for path in (SQL / "parts").glob("*.sql")}
FILES = sorted([*SQL.glob("*.sql"), *SQL.glob("console/*.sql")])
SCHEMA = sorted((SQL / "schema").glob("*.sql"))
LOADERS = {"load", "for_day", "_execute", "_settle_found", "_see"}
READS = re.compile(
    r"(?:FROM|JOIN|UPDATE|USING)\s+(jobs_(?:job|timer|outcome|attempt|crontick))\b", re.IGNORECASE
)
BOUNDS = re.compile(
    r"(due_at|slot) (= ANY\((%s|%\((dues|slots)\)s::timestamptz\[\])\)|>= %\(start\)s AND (\w+\.)?\1 < %\(end\)s)"
)


def name_of(path: Path) -> str:
    return path.relative_to(SQL).with_suffix("").as_posix()


def sources() -> Iterator[Path]:
    for app in ("jobs", "dispatch"):
        yield from (ROOT / app).rglob("*.py")


@cache
def callers() -> dict[str, set[str]]:
    """Name of a statement -> the functions that load it."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sources():
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef):
                for name in _loaded(function):
                    found[name].add(f"{path.relative_to(ROOT)}:{function.name}")
    return found


def _loaded(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        names: list[ast.AST] = []
        if isinstance(node, ast.Call) and _called(node) in LOADERS:
            names = list(node.args)
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "statement":
            names = list(ast.walk(node.value))
        yield from (
            name.value for name in names if isinstance(name, ast.Constant) and isinstance(name.value, str)
        )


def _called(node: ast.Call) -> str | None:
    """The name of a function, or of a method of `self`."""
    if isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", None) == "self":
        return node.func.attr
    return getattr(node.func, "id", None)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_statement_is_loaded_by_exactly_one_function(path: Path) -> None:
    assert len(callers()[name_of(path)]) == 1, callers()[name_of(path)]


def test_nothing_is_loaded_that_is_not_there() -> None:
    names = {name_of(path) for path in FILES} | {f"schema/{path.stem}" for path in SCHEMA}
    assert {name for name in callers() if not name.startswith("jobs_")} <= names


def test_every_part_stands_in_a_statement() -> None:
    plain = {part for part in sql.PLAIN.values() if part}
    assert {*sql.PARTS, *plain} == PARTS
    for part in sql.PARTS:
        assert any(f"{{{part}}}" in path.read_text("utf-8") for path in FILES), part
        for text in (sql.load("claim"), sql.load("claim", plain=True)):
            assert f"{{{part}}}" not in text


@pytest.mark.parametrize("path", SCHEMA, ids=lambda path: path.stem)
def test_every_file_of_the_schema_is_run_by_one_migration(path: Path) -> None:
    migrations = (ROOT / "jobs" / "migrations").glob("0*.py")
    assert sum(f'load("schema/{path.stem}")' in each.read_text("utf-8") for each in migrations) == 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_statement_begins_with_its_verb_and_a_reason(path: Path) -> None:
    text = path.read_text("utf-8")
    assert re.match(r"-- [a-z]", text)
    assert ";" not in re.sub(r"--.*", "", text), "one statement a file, sent as such"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_only_values_and_leaves_are_put_in(path: Path) -> None:
    text = path.read_text("utf-8")
    assert {name for _, name, _, _ in Formatter().parse(text) if name} <= {
        "job",
        "timer",
        "outcome",
        "attempt",
        *PARTS,
    }
    assert set(re.findall(r"%(.)", text)) <= {"("}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_partitioned_table_that_is_read_has_bounds_of_its_own(path: Path) -> None:
    assert unbounded(path.read_text("utf-8")) == []


def test_statements_inside_the_code_have_bounds_too() -> None:
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and READS.search(node.value):
                assert unbounded(node.value) == [], path


def test_the_sweep_sees_a_statement_without_bounds() -> None:
    bound = "due_at = ANY(%(dues)s::timestamptz[])"
    assert unbounded("DELETE FROM jobs_timer WHERE job_id = ANY(%(ids)s)") == ["jobs_timer"]
    join = f"SELECT FROM jobs_job a JOIN jobs_outcome b ON true WHERE a.{bound}"
    assert unbounded(join) == ["jobs_job", "jobs_outcome"]
    assert unbounded(f"{join} AND b.{bound}") == []


def unbounded(statement: str) -> list[str]:
    """The partitioned tables that a statement reads by their parents' names, when it has fewer bounds than tables."""
    text = re.sub(r"--.*", "", statement)
    reads = [read[1] for read in READS.finditer(text)]
    return reads if len(BOUNDS.findall(text)) < len(reads) else []
