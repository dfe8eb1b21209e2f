"""Tenants by slug: created on first use, on a side connection, so that the caller's rollback does not undo what other
transactions may already refer to, and no two callers wait for each other."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from django.db import connections

from jobs import db
from jobs.conf import conf

_ids: dict[tuple[str, str], int] = {}
_lock = threading.Lock()


def tenant_ids(slugs: Iterable[str], using: str = "default") -> dict[str, int]:
    """The id of each tenant; those that do not exist yet are made with the settings' defaults."""
    wanted = set(slugs)
    if unknown := [slug for slug in wanted if (using, slug) not in _ids]:
        found = _read(unknown, using)
        if missing := [slug for slug in unknown if slug not in found]:
            with connections[using].wrap_database_errors:
                found |= _make(missing, using)
        with _lock:
            _ids.update({(using, slug): tenant_id for slug, tenant_id in found.items()})
    return {slug: _ids[using, slug] for slug in wanted}


def forget() -> None:
    """Drop what this process knows, after tenants were deleted (tests)."""
    with _lock:
        _ids.clear()


def _read(slugs: list[str], using: str) -> dict[str, int]:
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT slug, id FROM jobs_tenant WHERE slug = ANY(%s)", [slugs])
        return dict(cursor.fetchall())


def _make(slugs: list[str], using: str) -> dict[str, int]:
    connection = db.connect(using, name="punctual tenants")
    try:
        connection.execute(
            "INSERT INTO jobs_tenant (slug, weight, max_running) SELECT unnest(%s::text[]), 1, %s "
            "ON CONFLICT (slug) DO NOTHING",
            [sorted(slugs), conf().tenant_max_running],
        )
        rows = connection.execute("SELECT slug, id FROM jobs_tenant WHERE slug = ANY(%s)", [slugs]).fetchall()
    finally:
        connection.close()
    return dict(rows)
