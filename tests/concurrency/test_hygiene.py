"""What a body does to its thread's connections stays in its own attempt; one that does nothing costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection as django
from django.db import connections
from django.db.backends.signals import connection_created

from dispatch import hygiene
from dispatch.hygiene import CleanConnections, close_connections
from jobs.db import ServerBound
from jobs.models import Queue
from tests.racing import beside

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]


def in_a_thread(act: Callable[[], Any]) -> Any:
    """A body's thread, which has no connection yet."""
    return beside(act).result(30)


def run(*statements: str) -> Any:
    """The first value that the last of these returns."""
    with django.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return cursor.fetchone()[0] if cursor.description else None


def setting() -> Any:
    return run("SHOW application_name")


def set_something() -> None:
    run("SET application_name = 'left by a body'", "CREATE TEMPORARY TABLE left_by_a_body ()")


def is_clean() -> bool:
    return setting() != "left by a body" and run("SELECT to_regclass('left_by_a_body')") is None


def leave_open() -> None:
    django.set_autocommit(False)
    run("INSERT INTO jobs_queue (name) VALUES ('left open')")


def test_a_body_that_uses_no_database_costs_no_look_at_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    for name in ("close_old_connections", "reset_queries", "_clean"):
        monkeypatch.setattr(hygiene, name, lambda *args, name=name: looks.append(name))

    def bodies() -> None:
        for _ in range(3):
            with CleanConnections():
                pass

    in_a_thread(bodies)
    assert looks == []


@pytest.mark.parametrize("before", [0, 1], ids=["first of its thread", "after another"])
def test_settings_and_temporary_tables_of_a_body_do_not_reach_the_next(before: int) -> None:
    def bodies() -> bool:
        for _ in range(before):
            with CleanConnections():
                run("SELECT 1")
        with CleanConnections():
            set_something()
        return is_clean()

    assert in_a_thread(bodies)


@pytest.mark.parametrize("before", [0, 1], ids=["first of its thread", "after another"])
def test_a_transaction_that_a_body_left_open_is_rolled_back(before: int) -> None:
    def bodies() -> bool:
        for _ in range(before):
            with CleanConnections():
                run("SELECT 1")
        with CleanConnections():
            leave_open()
        return django.get_autocommit() and not django.in_atomic_block

    assert in_a_thread(bodies)
    assert not Queue.objects.exists()


def test_a_body_that_fails_leaves_a_clean_connection_too() -> None:
    def bodies() -> bool:
        with pytest.raises(ZeroDivisionError):
            fail()
        return is_clean()

    def fail() -> None:
        with CleanConnections():
            set_something()
            raise ZeroDivisionError

    assert in_a_thread(bodies)


def test_only_what_a_body_has_used_is_reset() -> None:
    def bodies() -> tuple[bool, bool]:
        set_something()
        with CleanConnections():
            pass
        untouched = not is_clean()
        with CleanConnections():
            run("SELECT 1")
        return untouched, is_clean()

    assert in_a_thread(bodies) == (True, True)


def test_a_session_that_was_lost_is_replaced_before_the_next_body(connection: Any) -> None:
    def bodies() -> Any:
        with CleanConnections():
            pid = run("SELECT pg_backend_pid()")
        connection.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
        with CleanConnections():
            return run("SELECT pg_backend_pid()") != pid

    assert in_a_thread(bodies)


def test_an_idle_thread_keeps_no_connection_and_starts_anew() -> None:
    def bodies() -> list[bool]:
        with CleanConnections():
            run("SELECT 1")
        found = [django.connection is None]
        close_connections()
        found.append(django.connection is None)
        with CleanConnections():
            set_something()
        return [*found, is_clean()]

    assert in_a_thread(bodies) == [False, True, True]


def test_cx_04_a_statement_that_one_body_has_prepared_can_be_sent_by_the_next() -> None:
    """An atomic body's completion is prepared in its thread's session, which is reset after each body."""

    def bodies() -> list[tuple[int]]:
        found: list[tuple[int]] = []
        for prepare in (False, True, True, False, True):
            with CleanConnections():
                run("SELECT 1")
                found += ServerBound(django.connection).execute("SELECT 7", prepare=prepare).fetchall()
        return found

    assert in_a_thread(bodies) == [(7,)] * 5


def facts() -> tuple[Any, ...]:
    """What a body finds of its session, by Django's connection and by psycopg's."""
    django.ensure_connection()
    raw: Any = django.connection
    return (
        raw.autocommit,
        raw.prepare_threshold,
        raw.execute("SELECT 1").fetchone(),
        run("SHOW transaction_isolation"),
        run("SHOW transaction_read_only"),
        run("SHOW application_name"),
        run("SELECT count(*) FROM pg_listening_channels()"),
        run("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"),
        run("SELECT count(*) FROM pg_prepared_statements WHERE name = 'left'"),
        run("SELECT count(*) FROM pg_cursors"),
        run("SELECT to_regclass('left_by_a_body')"),
        [*django.execute_wrappers],
    )


LEFT: list[Any] = []
VALUES: dict[str, Any] = {"no": False, "yes": True, "0": 0, "serial": 4, "rows": lambda cursor: list}


def enter(manager: Any) -> Any:
    """And never leave it: who forgets it would."""
    LEFT.append(manager)
    return manager.__enter__()


def spoil(raw: Any, how: str) -> None:
    """By psycopg alone, or by attributes alone: Django's cursors are not used."""
    if how == "pipeline":
        enter(raw.pipeline())
    elif how == "copy":
        enter(raw.cursor().copy("COPY (SELECT generate_series(1, 10)) TO STDOUT"))
    elif how == "copy from":
        enter(raw.cursor().copy("COPY jobs_queue (name) FROM STDIN")).write_row(["left open"])
    elif how == "transaction":
        enter(raw.transaction())
        raw.execute("INSERT INTO jobs_queue (name) VALUES ('left open')")
    elif how == "wrapper":
        django.execute_wrappers.append(lambda *args: 1 / 0)
    elif how == "closed":
        raw.close()
    elif how.startswith("="):
        name, _, value = how[1:].partition(" ")
        setattr(raw, name, VALUES[value])
    else:
        raw.execute(how)


@pytest.mark.parametrize(
    "how",
    [
        "SET application_name = 'left by a body'",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "LISTEN left_by_a_body",
        "SELECT pg_advisory_lock(42)",
        "PREPARE \"left\" AS SELECT 1",
        "DECLARE kept CURSOR WITH HOLD FOR SELECT 1",
        "CREATE TEMPORARY TABLE left_by_a_body ()",
        "BEGIN; INSERT INTO jobs_queue (name) VALUES ('left open')",
        "=autocommit no",
        "=read_only yes",
        "=isolation_level serial",
        "=row_factory rows",
        "=prepare_threshold 0",
        "pipeline",
        "copy",
        "copy from",
        "transaction",
        "wrapper",
        "closed",
    ],
)  # fmt: skip
def test_cx_04_what_a_body_does_past_django_does_not_reach_the_next(how: str) -> None:
    def bodies() -> tuple[Any, Any]:
        with CleanConnections():
            before = facts()
        with CleanConnections():
            spoil(django.connection, how)
        with CleanConnections():
            return before, facts()

    before, after = in_a_thread(bodies)
    LEFT.clear()
    assert after == before
    assert not Queue.objects.exists()


@pytest.mark.parametrize("how", ["SET application_name = 'left by a body'", "=autocommit no", "pipeline"])
def test_cx_04_nor_what_the_first_body_of_a_thread_does(how: str) -> None:
    def bodies() -> tuple[Any, Any]:
        with CleanConnections():
            django.ensure_connection()
            spoil(django.connection, how)
        with CleanConnections():
            after = facts()
        close_connections()
        return after, facts()

    after, fresh = in_a_thread(bodies)
    LEFT.clear()
    assert after == fresh


@pytest.fixture
def receiver(transactional_db: None) -> Iterator[None]:
    """Of a project that sets something in each of its sessions."""

    def set_up(connection: Any, **kwargs: Any) -> None:
        connection.connection.execute("SET search_path = pg_catalog, public")

    connection_created.connect(set_up)
    yield
    connection_created.disconnect(set_up)


@pytest.fixture(params=["own", "pool"])
def zoned(transactional_db: None, request: pytest.FixtureRequest) -> Iterator[None]:
    """A server that is not in UTC, and a login that assumes another role (from a pool Django cannot do that)."""
    more: dict[str, Any] = {
        "own": {"assume_role": "pg_monitor"},
        "pool": {"pool": {"max_size": 2, "min_size": 1}},
    }
    options = {"options": "-c timezone=Asia/Tokyo", **more[request.param]}
    with patch.dict(django.settings_dict, {"OPTIONS": options, "CONN_MAX_AGE": 0}):
        yield
        pooled: Any = connections["default"]
        pooled.close_pool()


@pytest.mark.usefixtures("receiver", "zoned")
def test_cx_04_each_body_finds_what_the_project_does_with_a_new_session() -> None:
    """With another time zone than Django's, all times that it reads would be wrong by hours."""

    def found() -> tuple[Any, ...]:
        with CleanConnections():
            return tuple(run(f"SHOW {name}") for name in ("search_path", "timezone", "role"))

    def bodies() -> set[tuple[Any, ...]]:
        try:
            return {found() for _ in range(3)}
        finally:
            close_connections()

    role = django.settings_dict["OPTIONS"].get("assume_role", "none")
    assert in_a_thread(bodies) == {("pg_catalog, public", "UTC", role)}


@pytest.mark.usefixtures("receiver")
def test_cx_04_what_a_receiver_says_to_a_session_holds_for_each_body() -> None:
    def bodies() -> list[Any]:
        found = []
        for _ in range(3):
            with CleanConnections():
                found.append(run("SHOW search_path"))
        return found

    assert in_a_thread(bodies) == ["pg_catalog, public"] * 3
