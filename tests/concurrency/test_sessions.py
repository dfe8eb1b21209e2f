"""Our own sessions: which statements are prepared in them, and how they are planned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any
from unittest.mock import patch

import psycopg
import pytest
from django.db import OperationalError, connections
from pytest_django import Settings

from dispatch.children import ChildSettings, _end_sessions
from dispatch.shutdown import Shutdown
from dispatch.supervisor import Supervisor
from jobs import db
from jobs.session import LONG, bounded
from jobs.sql import load
from tests.factories import own_connection, schedule
from tests.racing import Connection, beside
from tests.waiting import wait_until

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]


def option(name: str, value: str) -> AbstractContextManager[Any]:
    """Of the test database, until the end of the block."""
    return patch.dict(connections["default"].settings_dict["OPTIONS"], {name: value})


@contextmanager
def direct(**changes: Any) -> Iterator[None]:
    """A direct address beside the pooled one, that is the same but for these."""
    connections.settings[db.DIRECT_ALIAS] = {**connections["default"].settings_dict, **changes}
    try:
        yield
    finally:
        with suppress(AttributeError):
            del connections[db.DIRECT_ALIAS]
        del connections.settings[db.DIRECT_ALIAS]


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


def test_pb_01_a_supervisor_renews_past_the_pooler_and_leaves_no_setting_in_its_sessions() -> None:
    settings = ChildSettings(queues=("q",), types=("t",), threads=1, using="default", listen=False)
    supervisor = Supervisor(settings, 1, Shutdown())
    options = {**connections["default"].settings_dict["OPTIONS"], "options": "-c punctual.way=direct"}
    with direct(OPTIONS=options), supervisor._connect() as connection:
        assert connection.execute("SELECT current_setting('punctual.way', true)").fetchone() == ("direct",)
        assert connection.execute("SHOW lock_timeout").fetchone() == ("1667ms",)


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


def test_who_schedules_gets_djangos_errors_from_the_connections_beside_his_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with direct(HOST="127.0.0.1", PORT="1"), pytest.raises(OperationalError):
        schedule()  # which days are there?
    schedule()
    with db.connect() as other, other.transaction(force_rollback=True):
        other.execute("INSERT INTO jobs_tenant (slug, weight) VALUES ('in the making', 1)")
        options = connections["default"].settings_dict["OPTIONS"]
        monkeypatch.setitem(options, "options", "-c lock_timeout=100ms")
        with pytest.raises(OperationalError):
            schedule(tenant="in the making")


@pytest.mark.parametrize("pooled", [False, True])
def test_st_05_a_transaction_whose_owner_has_vanished_is_ended_by_the_server(
    pooled: bool, settings: Settings
) -> None:
    """Else it holds its locks for as long as TCP believes in him, which is hours."""
    settings.SCHEDULER = {"lease": 1.0}
    with direct() if pooled else nullcontext(), db.connect() as connection, own_connection() as watch:
        pid = connection.info.backend_pid
        with suppress(psycopg.Error), connection.transaction():
            connection.execute("SELECT FROM jobs_queueentry FOR UPDATE")
            wait_until(
                lambda: not watch.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [pid]).fetchall(),
                what="the end of the session",
            )
        assert connection.broken


def test_behind_a_pooler_it_is_said_in_each_transaction_and_stays_in_none() -> None:
    def told(connection: Connection) -> str:
        row = connection.execute("SHOW idle_in_transaction_session_timeout").fetchone()
        assert row
        return str(row[0])

    with direct(), db.connect() as connection:
        assert told(connection) == "0"
        with connection.transaction(), connection.transaction():
            assert told(connection) == "30s"
        with connection.pipeline(), connection.transaction():
            assert told(connection) == "30s"
        assert told(connection) == "0"
    with db.connect() as connection:
        assert told(connection) == "30s"


def test_a_session_that_is_watched_waits_for_a_lock_for_a_part_of_its_patience() -> None:
    def told(connection: Connection) -> str:
        row = connection.execute("SHOW lock_timeout").fetchone()
        assert row
        return str(row[0])

    with db.connect(patience=30.0) as connection:
        assert told(connection) == "5s"
    with direct(), db.connect(patience=30.0) as connection:
        outside = told(connection)
        with bounded(connection):
            assert told(connection) == "5s"
        with connection.pipeline(), connection.transaction():
            assert told(connection) == "5s"
        assert told(connection) == outside != "5s"


@pytest.mark.parametrize("pooled", [False, True])
def test_cc_06_our_transactions_see_what_was_committed_before_their_locks(pooled: bool) -> None:
    """A role may have another default, and with that a limit would be judged by a count that is older than its lock."""
    role = option("options", "-c default_transaction_isolation=serializable")
    with role, direct() if pooled else nullcontext(), db.connect() as connection:
        with connection.pipeline(), bounded(connection):
            told = connection.execute("SHOW transaction_isolation")
        assert told.fetchone() == ("read committed",)
        with connection.transaction():
            assert connection.execute("SHOW transaction_isolation").fetchone() == ("read committed",)


def test_no_statement_of_ours_is_compiled() -> None:
    """Debian's server does so for what seems dear, and partitions without statistics seem so: for longer than it takes."""
    with option("options", "-c jit=on"), db.connect() as connection:
        assert connection.execute("SHOW jit").fetchone() == ("off",)


def test_our_sessions_assume_the_role_that_djangos_do() -> None:
    """Else the days that they make belong to a login that may be gone tomorrow."""
    with option("assume_role", "pg_monitor"), db.connect() as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("pg_monitor",)


def test_who_has_assumed_a_role_ends_the_sessions_of_a_dead_child() -> None:
    name = "punctual worker 8"
    with db.connect(name=name) as busy:
        busy.execute("BEGIN; SELECT FROM jobs_tenant")
        with option("assume_role", "pg_monitor"), db.connect() as connection:
            _end_sessions(connection, name, pooled=False)
        with pytest.raises(psycopg.OperationalError):
            busy.execute("SELECT 1")


@pytest.mark.parametrize("pooled", [False, True])
def test_who_buries_a_child_behind_a_pooler_ends_no_session_that_may_be_anothers(
    connection: Connection, pooled: bool, settings: Settings
) -> None:
    """The pooler's sessions bear the name of whoever used them last."""
    settings.SCHEDULER = {"lease": 3.0}
    name = "punctual worker 7"
    with db.connect(name=name) as idle, db.connect(name=name) as busy:
        busy.execute("BEGIN; SELECT FROM jobs_tenant")
        _end_sessions(connection, name, pooled=pooled)
        for session in (idle, busy):
            if pooled:
                assert session.execute("SELECT 1").fetchone() == (1,)
            else:
                with pytest.raises(psycopg.OperationalError):
                    session.execute("SELECT 1")


def test_who_buries_a_child_ends_no_session_of_another_installation_on_the_same_server(
    connection: Connection, settings: Settings
) -> None:
    """Their processes have the same numbers."""
    settings.SCHEDULER = {"lease": 3.0}
    params = {**connections["default"].get_connection_params(), "application_name": "punctual worker 7"}
    for ours in ("context", "cursor_factory", "prepare_threshold"):
        params.pop(ours, None)
    with psycopg.connect(**{**params, "dbname": "postgres"}) as theirs, psycopg.connect(**params) as own:
        _end_sessions(connection, "punctual worker 7", pooled=False)
        assert theirs.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(psycopg.OperationalError):
            own.execute("SELECT 1")


def test_the_server_asks_whether_a_silent_client_is_still_there() -> None:
    """Between two statements of a pipeline no timeout of the server runs: the client that vanished there holds its locks
    until TCP says so."""
    with db.connect() as connection:
        said = connection.execute(
            "SELECT name FROM pg_settings WHERE name LIKE 'tcp_keepalives_%' AND source = 'session'"
        ).fetchall()
    assert sorted(name for (name,) in said) == [
        "tcp_keepalives_count",
        "tcp_keepalives_idle",
        "tcp_keepalives_interval",
    ]


def test_a_long_statement_is_sent_like_any_other() -> None:
    """From 4,096 characters on with numbered parameters."""
    long = "SELECT %(text)s::text, 7 %% 4, %(number)s::int, %(text)s::text" + " " * LONG
    with db.connect() as connection:
        assert connection.execute(long, {"number": 3, "text": "a"}).fetchone() == ("a", 3, 3, "a")
