"""What is held, for the strip on every page, and which installation this is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from jobs.console.remember import remembered
from jobs.models import Hold
from jobs.scope import slugs_of

SHOWN = 5


@dataclass(frozen=True)
class Held:
    holds: list[Any]
    more: bool


@remembered(2)
def in_force(using: str = "default") -> Held:
    """The holds that stop something now, the newest first."""
    found = list(
        Hold.objects.using(using).filter(
            Q(until__isnull=True) | Q(until__gt=Now()), drained_at__isnull=True, since__lte=Now()
        )[: SHOWN + 1]
    )
    return Held(found[:SHOWN], len(found) > SHOWN)


def seen_by(user: Any) -> Held:
    """Without those of tenants and groups that the user may not know of."""
    slugs, held = slugs_of(user), in_force()
    if slugs is None:
        return held
    known = [
        hold for hold in held.holds if hold.scope == "all" or (hold.scope == "tenant" and hold.key in slugs)
    ]
    return Held(known, False)


def environment() -> tuple[str, str]:
    """`SCHEDULER_CONSOLE_ENVIRONMENT`, a name or a pair of name and colour (red, amber, green, blue or grey), for the badge
    beside the sections; empty: no badge."""
    said: Any = getattr(settings, "SCHEDULER_CONSOLE_ENVIRONMENT", "")
    name, colour = said if isinstance(said, tuple | list) else (said, "grey")
    return str(name)[:40], colour if colour in ("red", "amber", "green", "blue") else "grey"
