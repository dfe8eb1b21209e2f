"""Runs a page's statement."""

from __future__ import annotations

from typing import Any, LiteralString

from django.db import connections


def rows(statement: LiteralString, params: dict[str, Any] | None = None, using: str = "default") -> list[Any]:
    with connections[using].cursor() as cursor:
        cursor.execute(statement, params)
        return list(cursor.fetchall())
