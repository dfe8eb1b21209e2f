"""Tenants: how each fares beside all others, and what may hold its jobs up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.http import HttpRequest

from jobs import clock, rollups
from jobs.console import course, sections
from jobs.console.held import Held, in_force
from jobs.models import RateBucket, Tenant, TenantQueueLimit
from jobs.models.rollup import Kind
from jobs.scope import slugs_of

SHOWN = 50


@dataclass(frozen=True)
class Fare:
    """What a line of the list says beside the tenant's own row."""

    standing: rollups.Standing
    past: course.Past
    is_held: bool
    limit: int | None
    until: datetime | None
    """The end of a temporary limit."""

    @property
    def condition(self) -> str:
        if self.is_held:
            return "held"
        if self.limit is not None and self.standing.running >= self.limit:
            return "at its limit"
        return "working" if self.standing.running or self.standing.waiting else "idle"

    @property
    def wait(self) -> timedelta | None:
        oldest = self.standing.oldest
        return None if oldest is None else max(clock.now() - oldest, timedelta())


class TenantList(ChangeList):
    """Two statements more for a page of tenants, whatever they have."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        slugs = slugs_of(request.user)
        found = fares(self.result_list, in_force(None if slugs is None else tuple(slugs)))
        for tenant in self.result_list:
            tenant.fare = found[tenant.slug]


def fares(tenants: Sequence[Any], held: Held) -> dict[str, Fare]:
    names = tuple(tenant.slug for tenant in tenants)
    now = clock.now()
    standings = rollups.backlog(Kind.TENANT, names=names)
    past = course.pasts(Kind.TENANT, names)
    return {
        tenant.slug: Fare(
            standings.get(tenant.slug, rollups.Standing(tenant.slug)),
            past[tenant.slug],
            held.stops("tenant", tenant.slug),
            *limit(tenant, now),
        )
        for tenant in tenants
    }


def limit(tenant: Any, now: datetime) -> tuple[int | None, datetime | None]:
    """Most jobs at once now, and until when that holds if it is temporary."""
    if tenant.temporary_until is not None and tenant.temporary_until > now:
        return tenant.temporary_max_running, tenant.temporary_until
    return tenant.max_running, None


def gather(request: HttpRequest, tenant: Tenant) -> dict[str, Any]:
    """What the page of one tenant shows above its limits."""
    now = clock.now()
    told = course.course(Kind.TENANT, tenant.slug, request.GET.get("span", ""))
    slugs = slugs_of(request.user)
    everyone = course.pasts(Kind.ALL, ("",))[""] if slugs is None else None
    standing = rollups.backlog(Kind.TENANT, names=[tenant.slug]).get(
        tenant.slug, rollups.Standing(tenant.slug)
    )
    stopped = in_force(None if slugs is None else tuple(slugs)).of("tenant", tenant.slug)
    return {
        "tenant": tenant,
        "fare": Fare(standing, course.Past(told.total), bool(stopped), *limit(tenant, now)),
        "course": told,
        "everyone": everyone,
        "spans": list(course.SPANS),
        "flow": told.flow(),
        "lateness": told.lateness(),
        "ends_at": limit(tenant, now)[1],
        "bucket": _bucket(tenant, now),
        "queue_limits": list(TenantQueueLimit.objects.filter(tenant=tenant)[:SHOWN]),
        "holds": stopped[:SHOWN],
        "search": sections.search(tenant=tenant.slug),
        "hold_url": sections.hold_url("tenant", tenant.slug),
        "may_hold": request.user.has_perm("jobs.add_hold"),
    }


def _bucket(tenant: Tenant, now: datetime) -> tuple[float, float] | None:
    """Starts saved up now, of how many; None: it has no rate."""
    rate = tenant.per_second
    if rate is None:
        return None
    most = float(tenant.burst or max(rate, 1.0))
    row = RateBucket.objects.filter(scope="tenant", key=str(tenant.pk)).first()
    if row is None:
        return most, most
    return min(most, row.tokens + rate * max((now - row.refilled_at).total_seconds(), 0.0)), most
