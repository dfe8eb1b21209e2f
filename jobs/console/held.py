"""What is held, for the strip on every page, and which installation this is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from jobs.console.remember import remembered
from jobs.models import Hold, HoldScope

SHOWN = 5
MOST = 500
"""So many, the newest, are known to a page."""


@dataclass(frozen=True)
class Held:
    every: list[Any]

    @property
    def holds(self) -> list[Any]:
        """What the strip shows."""
        return self.every[:SHOWN]

    @property
    def more(self) -> bool:
        return len(self.every) > SHOWN

    @cached_property
    def targets(self) -> frozenset[tuple[str, str]]:
        return frozenset((hold.scope, hold.key) for hold in self.every)

    def stops(self, scope: str, key: str) -> bool:
        return (HoldScope.ALL, "") in self.targets or (scope, key) in self.targets

    def of(self, scope: str, key: str) -> list[Any]:
        """Those that stop this."""
        return [hold for hold in self.every if (hold.scope, hold.key) in ((HoldScope.ALL, ""), (scope, key))]


@remembered(2)
def in_force(slugs: tuple[str, ...] | None = None) -> Held:
    """The holds that stop something now, the newest first; `slugs`: those of everything and of these tenants alone."""
    found = for_tenants(Hold.objects.all(), slugs).filter(
        Q(until__isnull=True) | Q(until__gt=Now()), drained_at__isnull=True, since__lte=Now()
    )
    return Held(list(found[:MOST]))


def for_tenants(holds: QuerySet[Hold], slugs: Collection[str] | None) -> QuerySet[Hold]:
    """Those that somebody may see who sees these tenants alone; None: every tenant."""
    if slugs is None:
        return holds
    return holds.filter(Q(scope=HoldScope.ALL) | Q(scope=HoldScope.TENANT, key__in=slugs))


def environment() -> tuple[str, str]:
    """`SCHEDULER_CONSOLE_ENVIRONMENT`, a name or a pair of name and colour (red, amber, green, blue or grey), for the badge
    beside the sections; empty: no badge."""
    said: Any = getattr(settings, "SCHEDULER_CONSOLE_ENVIRONMENT", "")
    name, colour = said if isinstance(said, tuple | list) else (said, "grey")
    return str(name)[:40], colour if colour in ("red", "amber", "green", "blue") else "grey"
