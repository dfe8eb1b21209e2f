"""A database of the demo's own, made before it and dropped after it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connections
from psycopg import sql

from jobs.errors import NotConfigured

PREFIX = "punctual_demo_"


def new_name() -> str:
    return f"{PREFIX}{secrets.token_hex(4)}"


@contextmanager
def scratch(name: str, home: str, *, sweep: bool) -> Iterator[None]:
    """`home`: the database from which it is made. `sweep`: drop what demos that were killed have left behind."""
    with _connect(home) as connection:
        connection.execute("SELECT pg_advisory_lock(hashtext(%s))", [name])  # it is in use
        try:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        except psycopg.errors.InsufficientPrivilege as error:
            raise NotConfigured(
                f"the demo needs a database of its own, and {connection.info.user} may not create one: "
                f"ALTER ROLE {connection.info.user} CREATEDB, or unset DATABASE_URL"
            ) from error
        try:
            if sweep:
                _sweep(connection, name)
            yield
        finally:
            connections.close_all()
            _drop(connection, name)


def _connect(database: str) -> psycopg.Connection[Any]:
    params = connections["default"].get_connection_params()
    for ours in ("context", "cursor_factory", "prepare_threshold"):
        params.pop(ours, None)
    connection: psycopg.Connection[Any] = psycopg.connect(**{**params, "dbname": database}, autocommit=True)
    return connection


def _sweep(connection: psycopg.Connection[Any], ours: str) -> None:
    rows = connection.execute(
        "SELECT datname FROM pg_database WHERE starts_with(datname, %s) AND datname <> %s", [PREFIX, ours]
    ).fetchall()
    for (name,) in rows:
        row = connection.execute("SELECT pg_try_advisory_lock(hashtext(%s))", [name]).fetchone()
        if row and row[0]:
            _drop(connection, name)


def _drop(connection: psycopg.Connection[Any], name: str) -> None:
    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
