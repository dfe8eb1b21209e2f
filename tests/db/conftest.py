from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.db import connections


@pytest.fixture
def here(db: None) -> psycopg.Connection[Any]:
    """Django's own connection, inside the transaction that the test rolls back: the loops' functions work on it, and
    nothing needs to be flushed. `now()` stands still in it: `factories.come_due`."""
    connections["default"].ensure_connection()
    raw: psycopg.Connection[Any] = connections["default"].connection
    return raw
