"""Each statement's plan as it is sent: EXPLAIN ANALYZE before the statement itself, rolled back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from django.db import connections

from jobs import sql

Connection = psycopg.Connection[Any]


@dataclass
class Seen:
    """What one statement read and wrote, added up over its plan."""

    name: str
    read: int = 0
    """Rows of tables that grow that its scans looked at, without those of a single pass over a whole table: that is
    the planner's good right when a table is small, and never quadratic."""
    asked: int = 0
    """The length of its longest list of values."""
    written: int = 0
    returned: int = 0
    blocks: int = 0
    indexes: set[str] = field(default_factory=set)
    relations: set[str] = field(default_factory=set)
    sequential: set[str] = field(default_factory=set)

    @property
    def rows(self) -> int:
        return max(1, self.written, self.returned, self.asked)


@dataclass
class Recorder:
    """Stands for a connection of the loops; `django()` records what goes over Django's."""

    connection: Connection
    seen: list[Seen] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in Path(sql.__file__).parent.glob("*.sql"):
            self._names[path.read_text("utf-8").split("\n", 1)[0]] = path.stem

    def execute(self, statement: Any, params: Any = None) -> Any:
        if name := self.name_of(statement):
            with self.connection.transaction(force_rollback=True):
                self.note(name, params, self.connection.execute(_EXPLAIN + statement, params).fetchone())
        return self.connection.execute(statement, params)

    def transaction(self) -> Any:
        return self.connection.transaction()

    def cursor(self) -> Any:
        return self.connection.cursor()

    @contextmanager
    def django(self) -> Iterator[None]:
        with connections["default"].execute_wrapper(self._wrap):
            yield

    def _wrap(
        self, execute: Callable[..., Any], statement: str, params: Any, many: bool, context: Any
    ) -> Any:
        if name := self.name_of(statement):
            execute("SAVEPOINT explained", None, False, context)
            execute(_EXPLAIN + statement, params, False, context)
            self.note(name, params, context["cursor"].fetchone())
            execute("ROLLBACK TO SAVEPOINT explained", None, False, context)
        return execute(statement, params, many, context)

    def name_of(self, statement: Any) -> str | None:
        return self._names.get(str(statement).split("\n", 1)[0])

    def note(self, name: str, params: Any, row: Any) -> None:
        plan = row[0][0]["Plan"]
        seen = Seen(name, blocks=plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
        seen.returned = round(plan["Actual Rows"] * plan["Actual Loops"])
        seen.asked = max((len(value) for value in params.values() if isinstance(value, list)), default=0)
        _walk(plan, seen)
        self.seen.append(seen)


SMALL = {"jobs_queue", "jobs_process", "jobs_tenant"}
_EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) "


def _walk(node: dict[str, Any], seen: Seen) -> None:
    kind, loops = node["Node Type"], node["Actual Loops"]
    if "Scan" in kind and node.get("Relation Name", "").startswith("jobs_") and loops:
        removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        looked_at = round((node["Actual Rows"] + removed) * loops)
        seen.relations.add(node["Relation Name"])
        if kind == "Seq Scan" and looked_at:
            seen.sequential.add(node["Relation Name"])
        if node["Relation Name"] not in SMALL and not (kind == "Seq Scan" and loops == 1):
            seen.read += looked_at
    if loops and "Index Name" in node:
        seen.indexes.add(node["Index Name"])
    if kind == "ModifyTable":
        if node.get("Operation") == "Insert" or "Relation Name" in node:
            seen.relations.add(node["Relation Name"])
        children = node.get("Plans", [])
        seen.written += max(
            (round(child["Actual Rows"] * child["Actual Loops"]) for child in children), default=0
        )
    for child in node.get("Plans", []):
        _walk(child, seen)
