"""Our own sessions: which statements are prepared in them, and how they are planned."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connections

from dispatch.children import ChildSettings
from dispatch.shutdown import Shutdown
from dispatch.supervisor import Supervisor
from jobs import db
from jobs.sql import load
from tests.racing import Connection, beside

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


def test_pb_01_a_supervisor_renews_past_the_pooler_and_leaves_no_setting_in_its_sessions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = connections["default"].settings_dict
    direct = {**here, "OPTIONS": {**here["OPTIONS"], "options": "-c punctual.way=direct"}}
    monkeypatch.setitem(connections.settings, db.DIRECT_ALIAS, direct)
    settings = ChildSettings(queues=("q",), types=("t",), threads=1, using="default", listen=False)
    supervisor = Supervisor(settings, 1, Shutdown())
    with supervisor._connect() as connection:
        assert connection.execute("SELECT current_setting('punctual.way', true)").fetchone() == ("direct",)
        assert connection.execute("SHOW lock_timeout").fetchone() == ("7500ms",)


def test_a_round_trip_that_takes_too_long_is_cut() -> None:
    with db.connect(patience=1.0) as connection, pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT pg_sleep(60)")
    assert connection.closed


def test_patience_is_for_one_round_trip_and_an_idle_session_has_all_the_time() -> None:
    with db.connect(patience=1.0) as connection:
        for _ in range(4):
            connection.execute("SELECT pg_sleep(0.6)")
        beside(lambda: connection.execute("SELECT 1")).result(60)
        with db.connect() as other:
            other.execute("SELECT pg_sleep(2.5)")
        assert connection.execute("SELECT 1").fetchone() == (1,)
