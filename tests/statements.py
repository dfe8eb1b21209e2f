"""Statements by the file of jobs/sql that they came from."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from jobs import sql


@cache
def _names() -> dict[str, str]:
    paths = Path(sql.__file__).parent.glob("*.sql")
    return {path.read_text("utf-8").split("\n", 1)[0]: path.stem for path in paths}


def name_of(statement: Any) -> str | None:
    return _names().get(str(statement).split("\n", 1)[0])


class Noting:
    """Stands for a connection and keeps the names of what was sent over it. `after`: what else is to happen once, right
    after the statement of that name."""

    def __init__(self, connection: Any, **after: Callable[[], object]) -> None:
        self._connection, self._after = connection, after
        self.sent: list[str] = []
        self.given: dict[str, Any] = {}
        """The values of the last statement of each name."""

    def execute(self, statement: Any, values: Any = None, **options: Any) -> Any:
        name = name_of(statement) or str(statement)
        self.sent.append(name)
        self.given[name] = values
        cursor = self._connection.execute(statement, values, **options)
        self._after.pop(name, lambda: None)()
        return cursor

    def pipeline(self) -> Any:
        """What follows is one round trip."""
        self.sent.append("pipeline")
        return self._connection.pipeline()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)
