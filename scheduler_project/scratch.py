"""A database of its own for a demo or a benchmark, made before it and dropped after it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import psycopg
from django.db import connections
from psycopg import sql

from jobs.errors import NotConfigured


def new_name(prefix: str) -> str:
    return f"{prefix}{secrets.token_hex(4)}"


def with_database(url: str, name: str) -> str:
    """The address of another database on the same server."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/{name}" + (f"?{parts.query}" if parts.query else "")


@contextmanager
def scratch(name: str, home: str, *, sweep: str | None) -> Iterator[None]:
    """`home`: the database from which it is made. `sweep`: the prefix of names under which others like it that were
    killed may have left theirs behind, to be dropped; None where the server is not ours alone."""
    with _connect(home) as connection:
        connection.execute("SELECT pg_advisory_lock(hashtext(%s))", [name])  # it is in use
        try:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        except psycopg.errors.InsufficientPrivilege as error:
            raise NotConfigured(
                f"this needs a database of its own, and {connection.info.user} may not create one: "
                f"ALTER ROLE {connection.info.user} CREATEDB, or unset DATABASE_URL"
            ) from error
        try:
            if sweep:
                _sweep(connection, sweep, name)
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


def _sweep(connection: psycopg.Connection[Any], prefix: str, ours: str) -> None:
    rows = connection.execute(
        "SELECT datname FROM pg_database WHERE starts_with(datname, %s) AND datname <> %s", [prefix, ours]
    ).fetchall()
    for (name,) in rows:
        row = connection.execute("SELECT pg_try_advisory_lock(hashtext(%s))", [name]).fetchone()
        if row and row[0]:
            _drop(connection, name)


def _drop(connection: psycopg.Connection[Any], name: str) -> None:
    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
