"""Our own sessions: which statements are prepared in them, and how they are planned."""

from __future__ import annotations

import pytest

from jobs import db
from jobs.sql import load
from tests.racing import Connection

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]


def planner(connection: Connection) -> tuple[str, ...]:
    return tuple(
        connection.execute(f"SHOW {name}").fetchone()[0]  # type: ignore[index]
        for name in ("plan_cache_mode", "enable_seqscan")
    )


def prepared(connection: Connection) -> int:
    """How many statements are prepared after this one was sent so."""
    for _ in range(10):
        connection.execute("SELECT 1")
    connection.execute(load("suspects"), {"queues": ["q"]}, prepare=True)
    row = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
    assert row
    return int(row[0])


def test_a_statement_is_prepared_when_it_asks_for_it_and_never_by_itself() -> None:
    with db.connect() as connection:
        assert planner(connection) == ("auto", "on")
        assert prepared(connection) == 1


def test_a_generic_session_plans_once_for_all_values_and_by_indexes() -> None:
    with db.connect(generic=True) as connection:
        assert planner(connection) == ("force_generic_plan", "off")
        assert prepared(connection) == 1


def test_behind_a_pooler_a_session_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be another one for each transaction."""
    monkeypatch.setattr(db, "is_pooled", lambda using: True)
    with db.connect(generic=True) as connection:
        assert planner(connection) == ("auto", "on")
        assert prepared(connection) == 0


def test_sessions_are_in_autocommit_and_speak_utc() -> None:
    with db.connect(name="n" * 100) as connection:
        assert connection.autocommit
        assert connection.info.parameter_status("TimeZone") == "UTC"
        assert connection.info.parameter_status("application_name") == "n" * 63
