"""The process tests under least privilege: with TEST_ROLE=application, whatever does not make days runs as a role that
may only read and write rows (`manage.py sqlgrants`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import errors, sql

from jobs.grants import grants

CHOSEN = os.environ.get("TEST_ROLE") == "application"
ROLE = "punctual_application"
OWNERS = ("migrate", "managepartitions", "rundispatcher")

Connection = psycopg.Connection[Any]


def environment(command: str, env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command, under the role that it needs."""
    if not CHOSEN or command in OWNERS:
        return dict(env)
    return {**env, "DATABASE_URL": as_application(env["DATABASE_URL"])}


@cache
def as_application(url: str) -> str:
    """The same database, as the application role, which is made and given what it needs."""
    with suppress(psycopg.OperationalError), psycopg.connect(url, autocommit=True) as owner:
        prepare(owner)  # unless the test is about one that cannot be reached
    parts = urlsplit(url)
    return parts._replace(netloc="@".join([ROLE, *parts.netloc.split("@")[1:]])).geturl()


def prepare(owner: Connection, role: str = ROLE) -> None:
    """Make this role, unless it is there, and give it what an application needs in this database, if it is migrated."""
    with suppress(
        errors.DuplicateObject, errors.UniqueViolation
    ):  # another session of the same cluster has made it
        owner.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
    if owner.execute("SELECT to_regclass('django_migrations')").fetchone() != (None,):
        for statement in grants(owner, role):
            owner.execute(statement.encode())
