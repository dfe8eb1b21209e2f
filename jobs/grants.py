"""Least privilege: what each SQL role of an installation needs, as statements for the owner to run.

The owner runs `migrate` and `rundispatcher` (which makes and drops days). Workers, web and sibling apps need rows only,
never tables: the application role. People who look get a role that reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
from django.apps import apps
from psycopg import sql

Connection = psycopg.Connection[Any]

_APPLICATION = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
    "REVOKE INSERT, UPDATE, DELETE ON {schema}.django_migrations FROM {role}",
    # Append-only; a trigger says so too. The owner's dispatcher prunes it.
    "REVOKE UPDATE, DELETE ON {schema}.jobs_operatoraction FROM {role}",
    # What the owner makes later: days above all, which statements address by name.
    "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role}",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT USAGE, SELECT ON SEQUENCES TO {role}",
)
_READER = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    # Through the parents, whose privileges hold for their days; no sessions, no password hashes.
    "GRANT SELECT ON {tables} TO {role}",
    "ALTER ROLE {role} SET default_transaction_read_only = on",
)


def grants(owner: Connection, application: str, reader: str | None = None) -> Iterator[str]:
    """Statements that give these existing roles what they need in the current schema; run by the owner of its tables,
    any number of times. ValueError when a role does not exist or is one that grants cannot bind, and before `migrate`."""
    if owner.execute("SELECT to_regclass('django_migrations')").fetchone() == (None,):
        raise ValueError("this database has no tables yet: run manage.py migrate first")
    for role in filter(None, (application, reader)):
        _check(owner, role)
    (schema,) = owner.execute("SELECT current_schema()").fetchone() or ("public",)
    models = apps.get_app_config("jobs").get_models()
    tables = [sql.Identifier(schema, model._meta.db_table) for model in models if model._meta.managed]
    for name, templates in ((application, _APPLICATION), (reader, _READER)):
        if name is None:
            continue
        parts = {
            "schema": sql.Identifier(schema),
            "role": sql.Identifier(name),
            "tables": sql.SQL(", ").join(tables),
        }
        for template in templates:
            yield sql.SQL(template).format(**parts).as_string(None)


def _check(owner: Connection, role: str) -> None:
    found = owner.execute(
        "SELECT rolsuper, rolname = current_user FROM pg_roles WHERE rolname = %s", [role]
    ).fetchone()
    if found is None:
        raise ValueError(f"there is no role {role!r}: an administrator runs CREATE ROLE … LOGIN first")
    superuser, is_owner = found
    if is_owner:
        raise ValueError(f"{role!r} is the one that asks, the owner: name another role")
    if superuser:
        raise ValueError(f"{role!r} is a superuser, whom no grant binds: name another role")
