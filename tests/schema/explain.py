"""Each statement's plan as it is sent: EXPLAIN ANALYZE before the statement itself, rolled back. `generic`: the plan
that is made once for all values, as in the sessions of a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import psycopg
from django.db import connections
from psycopg._queries import PostgresQuery
from psycopg.adapt import Transformer

from dispatch import watch
from jobs import db
from tests import statements

Connection = psycopg.Connection[Any]


@dataclass
class Seen:
    """What one statement read and wrote, added up over its plan."""

    name: str
    read: int = 0
    """Rows of tables that grow that its scans looked at, without those of a single pass over a whole table: that is
    the planner's good right when a table is small, and never quadratic."""
    compared: int = 0
    """Pairs of rows that a nested loop put beside each other in vain: with a wrong estimate of one row on either side,
    the product of both."""
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
    generic: bool = False
    seen: list[Seen] = field(default_factory=list)

    def __post_init__(self) -> None:
        with db.connect(name="punctual test", generic=self.generic) as session:
            self._settings = session.execute(_SETTINGS).fetchall()

    def execute(self, statement: Any, params: Any = None, **options: Any) -> Any:
        if name := name_of(statement):
            explain = self._explain_generic if self.generic else self._explain
            with self.connection.transaction(force_rollback=True):
                self.note(name, params, explain(statement, params))
        return self.connection.execute(statement, params, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    def pipeline(self) -> Any:
        """None: each statement is explained by itself."""
        return nullcontext()

    @contextmanager
    def django(self) -> Iterator[None]:
        with connections["default"].execute_wrapper(self._wrap):
            yield

    def _wrap(
        self, execute: Callable[..., Any], statement: str, params: Any, many: bool, context: Any
    ) -> Any:
        if name := name_of(statement):
            execute("SAVEPOINT explained", None, False, context)
            execute(_EXPLAIN + statement, params, False, context)
            self.note(name, params, context["cursor"].fetchone())
            execute("ROLLBACK TO SAVEPOINT explained", None, False, context)
        return execute(statement, params, many, context)

    def _explain(self, statement: Any, params: Any) -> Any:
        return self.connection.execute(_EXPLAIN + statement, params).fetchone()

    def _explain_generic(self, statement: Any, params: Any) -> Any:
        """Of the statement as it is prepared: with the types that its values are sent with."""
        query = PostgresQuery(Transformer(self.connection))
        query.convert(statement, params)
        values = zip(query.params or (), query.types, query.formats or (), strict=True)
        session = self.connection.pgconn
        literals = [
            session.exec_params(b"SELECT quote_nullable($1::text)", [value], [kind], [form]).get_value(0, 0)
            or b"NULL"
            for value, kind, form in values
        ]
        for setting in self._settings:
            self.connection.execute("SELECT set_config(%s, %s, true)", setting)
        session.prepare(b"explained", query.query, query.types)
        try:
            row = self.connection.execute(
                _EXPLAIN.encode()
                + b"EXECUTE explained"
                + (b"(%s)" % b", ".join(literals) if literals else b"")
            ).fetchone()
        finally:
            session.exec_(b"DEALLOCATE explained")
        return row

    def note(self, name: str, params: Any, row: Any) -> None:
        plan = row[0][0]["Plan"]
        seen = Seen(name, blocks=plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
        seen.returned = round(plan["Actual Rows"] * plan["Actual Loops"])
        given = params.values() if isinstance(params, Mapping) else params or ()
        seen.asked = max((_length(value) for value in given), default=0)
        _walk(plan, seen)
        self.seen.append(seen)


SMALL = {"jobs_keylimit", "jobs_queue", "jobs_process", "jobs_tenant"}
_EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) "
_SETTINGS = (
    "SELECT name, setting FROM pg_settings WHERE source = 'session' AND name ~ '^(plan_cache_mode|enable_)'"
)
"""What a session says to the planner."""
_BY_HAND = {watch._KNOWN: "known claims", watch._MINE: "all claims"}
"""Statements of the loops that are no files."""


def name_of(statement: Any) -> str | None:
    return statements.name_of(statement) or _BY_HAND.get(str(statement))


def _length(value: Any) -> int:
    if isinstance(value, list):
        return len(value)
    data = getattr(value, "data", b"")  # an array in PostgreSQL's binary format
    return int.from_bytes(data[12:16])


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
    seen.compared += round(node.get("Rows Removed by Join Filter", 0) * loops)
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
