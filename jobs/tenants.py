"""Tenants by slug: created on first use, on a side connection, so that the caller's rollback does not undo what other
transactions may already refer to, and no two callers wait for each other.

A deleted tenant is only marked at first: another process may know it still, and schedule a job for it without asking.
Every process asks again within a minute; who uses the slug makes it a tenant again; after a day the row goes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connections, transaction

from jobs import db
from jobs.clock import boottime
from jobs.conf import conf
from jobs.errors import TenantInUse, UnknownTenant
from jobs.sql import load

RECHECK = 60.0
"""Seconds after which a process looks whether a tenant that it knows is still one."""
MARKED = timedelta(days=1)
"""How long a deleted tenant is only marked: longer than any transaction that may know it."""

_ids: dict[tuple[str, str], tuple[int, float]] = {}
_lock = threading.Lock()


def tenant_ids(slugs: Iterable[str], using: str = "default") -> dict[str, int]:
    """The id of each tenant; those that do not exist yet are made with the settings' defaults. The slugs are checked
    (`jobs.slugs`)."""
    now, wanted, found = boottime(), set(slugs), dict[str, int]()
    for slug in wanted:
        known = _ids.get((using, slug))
        if known is not None and now - known[1] < RECHECK:
            found[slug] = known[0]
    if unknown := [slug for slug in wanted if slug not in found]:
        read = _read(unknown, using)
        if missing := [slug for slug in unknown if slug not in read]:
            with connections[using].wrap_database_errors:
                read |= _make(missing, using)
        with _lock:
            _ids.update({(using, slug): (tenant_id, now) for slug, tenant_id in read.items()})
        found |= read
    return found


def delete(slug: str, using: str = "default") -> None:
    """Delete a tenant that has no jobs, with its limits. TenantInUse when it has a job of any kept day, or a cron
    definition; UnknownTenant. In a transaction of its own or the caller's."""
    with transaction.atomic(using), connections[using].cursor() as cursor:
        cursor.execute("SELECT id FROM jobs_tenant WHERE slug = %s AND retired_at IS NULL FOR UPDATE", [slug])
        row = cursor.fetchone()
        if row is None:
            raise UnknownTenant(f"there is no tenant {slug!r}")
        require_unused(slug, row[0], using)
        cursor.execute("DELETE FROM jobs_tenantqueuelimit WHERE tenant_id = %s", row)
        cursor.execute(
            "UPDATE jobs_hold SET until = greatest(since, clock_timestamp()), drained_at = clock_timestamp() "
            "WHERE scope = 'tenant' AND key = %s AND drained_at IS NULL",
            [slug],
        )
        cursor.execute("DELETE FROM jobs_ratebucket WHERE scope = 'tenant' AND key = %s", [str(row[0])])
        cursor.execute(
            "UPDATE jobs_tenant SET retired_at = clock_timestamp(), weight = 1, max_running = %s, rate = NULL, "
            "burst = NULL, temporary_max_running = NULL, temporary_until = NULL, noisy_exempt = false WHERE id = %s",
            [conf().tenant_max_running, row[0]],
        )
    with _lock:
        _ids.pop((using, slug), None)


def require_unused(slug: str, tenant_id: int, using: str) -> None:
    """TenantInUse when it has jobs or cron definitions."""
    with connections[using].cursor() as cursor:
        if _in_use(cursor, [tenant_id]):
            raise TenantInUse(
                f"The tenant {slug} has jobs or cron definitions. It can be deleted when the days of its jobs are gone "
                "(SCHEDULER['retention']); to stop its jobs, pause it or set its max_running to 0."
            )


def sweep(connection: Any, now: datetime) -> int:
    """What became of deleted tenants: who has a job after all is a tenant again, the others' rows go after a day.
    Returns how many rows went."""
    rows = connection.execute("SELECT id FROM jobs_tenant WHERE retired_at IS NOT NULL").fetchall()
    if not rows:
        return 0
    used = _in_use(connection, [tenant_id for (tenant_id,) in rows])
    connection.execute("UPDATE jobs_tenant SET retired_at = NULL WHERE id = ANY(%s)", [used])
    gone = connection.execute("DELETE FROM jobs_tenant WHERE retired_at <= %s", [now - MARKED])
    return int(gone.rowcount)


def forget() -> None:
    """Drop what this process knows, after tenants were deleted (tests)."""
    with _lock:
        _ids.clear()


def _in_use(cursor: Any, ids: list[int]) -> list[int]:
    start, end = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
    found = cursor.execute(load("tenants_in_use"), {"ids": ids, "start": start, "end": end}) or cursor
    return [tenant_id for (tenant_id,) in found.fetchall()]


def _read(slugs: list[str], using: str) -> dict[str, int]:
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT slug, id FROM jobs_tenant WHERE slug = ANY(%s) AND retired_at IS NULL", [slugs]
        )
        return dict(cursor.fetchall())


def _make(slugs: list[str], using: str) -> dict[str, int]:
    """A row that others hold, who may be our caller himself and just delete it, is not waited for: a job for a tenant
    that is deleted at the same time makes it a tenant again (`sweep`)."""
    connection = db.connect(using, name="punctual tenants")
    try:
        connection.execute(
            "INSERT INTO jobs_tenant (slug, weight, max_running) SELECT name, 1, %s FROM unnest(%s::text[]) name "
            "WHERE NOT EXISTS (SELECT FROM jobs_tenant WHERE slug = name) ON CONFLICT DO NOTHING",
            [conf().tenant_max_running, sorted(slugs)],
        )
        connection.execute(
            "UPDATE jobs_tenant SET retired_at = NULL WHERE id IN (SELECT id FROM jobs_tenant "
            "WHERE slug = ANY(%s) AND retired_at IS NOT NULL ORDER BY id FOR UPDATE SKIP LOCKED)",
            [slugs],
        )
        rows = connection.execute("SELECT slug, id FROM jobs_tenant WHERE slug = ANY(%s)", [slugs]).fetchall()
    finally:
        connection.close()
    return dict(rows)
