"""Whose tenants somebody may see and touch. One place: lists, details, searches, commands and operations ask here.

A foreign tenant does not exist: what belongs to it is not found, never forbidden.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from jobs.models.member import TenantMember

EVERY = "jobs.every_tenant"

Scope = frozenset[int] | None
"""Ids of tenants; None: all of them."""


def scope_of(user: Any) -> Scope:
    """All for who has the permission `jobs.every_tenant`; else the tenants the user is a member of, perhaps none. Asked
    once for each user object, so once a request."""
    return None if (found := _members(user)) is None else frozenset(found)


def slugs_of(user: Any) -> list[str] | None:
    """The scope as slugs, in order; None: all."""
    return None if (found := _members(user)) is None else sorted(found.values())


def within(user: Any, ids: Iterable[UUID], using: str = "default") -> set[UUID]:
    """Those of these jobs that exist for this user. No statement for who sees all."""
    scope = scope_of(user)
    if scope is None:
        return set(ids)
    from jobs.models import Job

    found = Job.objects.using(using).filter(pk__in=list(ids), tenant_id__in=scope)
    return set(found.values_list("pk", flat=True))


def _members(user: Any) -> dict[int, str] | None:
    if not hasattr(user, "_jobs_tenants"):
        user._jobs_tenants = None if user.has_perm(EVERY) else _read(user)
    found: dict[int, str] | None = user._jobs_tenants
    return found


def _read(user: Any) -> dict[int, str]:
    if user.pk is None or not user.is_active:
        return {}
    return dict(TenantMember.objects.filter(user_id=user.pk).values_list("tenant_id", "tenant__slug"))
