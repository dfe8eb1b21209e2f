from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import psycopg
import pytest
from django.db import connections

from jobs import db
from jobs.partitions import expire
from tests.schema.days import ended, expires, expiry

pytestmark = pytest.mark.usefixtures("transactional_db")
Connection = psycopg.Connection[Any]


def test_who_uses_a_table_of_the_same_number_in_another_database_is_not_in_the_way(
    connection: Connection, old: date, own_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that was copied has the numbers of its original."""
    ended(connection, old)
    settings = connections["default"].settings_dict
    with monkeypatch.context() as elsewhere:
        elsewhere.setitem(settings, "NAME", own_database.removesuffix("_copy"))
        original = db.connect(name="punctual test")
    monkeypatch.setattr(expiry, "LONG_TRANSACTION", timedelta())
    with original, original.transaction(force_rollback=True):
        original.execute("SELECT count(*) FROM jobs_outcome")
        assert old in expire(expires(old)).dropped
