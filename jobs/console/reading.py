"""Runs a page's statement."""

from __future__ import annotations

import json
from typing import Any, LiteralString

from django.db import connections

_JSONB = 3802
"""Its number in PostgreSQL's catalog. Django's cursors leave it as text."""


def rows(statement: LiteralString, params: dict[str, Any] | None = None, using: str = "default") -> list[Any]:
    with connections[using].cursor() as cursor:
        cursor.execute(statement, params)
        texts = {place for place, column in enumerate(cursor.description) if column.type_code == _JSONB}
        found = cursor.fetchall()
    return [_parsed(row, texts) for row in found] if texts else found


def _parsed(row: tuple[Any, ...], texts: set[int]) -> tuple[Any, ...]:
    return tuple(
        json.loads(value) if place in texts and isinstance(value, str) else value
        for place, value in enumerate(row)
    )
