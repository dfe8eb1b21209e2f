"""How many jobs a query finds: exact as long as that is cheap, else estimated, and always labelled with which it is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta

from django.utils.translation import gettext as _

from jobs.search.compile import Query
from jobs.search.guard import TooSlow, bounded
from jobs.search.sources import sources

CAP = 10_000
PATIENCE = timedelta(milliseconds=300)


@dataclass(frozen=True)
class Count:
    number: int | None
    """None: not known."""
    how: str
    """exact, at least, estimated or unknown."""

    def __str__(self) -> str:
        """As a page says it: 1,204 · more than 10,000 · ≈ 1.2 M · many."""
        if self.number is None:
            return _("many")
        if self.how == "exact":
            return f"{self.number:,}"
        if self.how == "at least":
            return _("more than {number}").format(number=f"{self.number:,}")
        return f"≈ {_short(self.number)}"


def count(query: Query, using: str = "default", cap: int = CAP) -> Count:
    """Exact up to `cap`; beyond it the planner's estimate. Three short statements at most."""
    places = sources(query, query.due, using)
    if not places:
        return Count(0, "exact")
    left = cap + 1
    try:
        for place in places:
            if left:
                with bounded(using, PATIENCE):
                    left -= place.order_by()[:left].count()
    except TooSlow:
        return _estimate(query, using, at_least=0)
    return Count(cap + 1 - left, "exact") if left else _estimate(query, using, at_least=cap)


def _estimate(query: Query, using: str, *, at_least: int) -> Count:
    """What the planner thinks; within a factor of two most of the time, so it is never the only thing to go by."""
    total = 0
    try:
        with bounded(using, PATIENCE):
            for place in sources(query, query.due, using):
                plan = json.loads(place.order_by().explain(format="json"))[0]["Plan"]
                total += int(plan["Plan Rows"])
    except TooSlow:
        total = 0
    if total > at_least:
        return Count(total, "estimated")
    return Count(at_least, "at least") if at_least else Count(None, "unknown")


def _short(number: int) -> str:
    """Two digits are what an estimate knows."""
    rounded = round(number, -(len(str(number)) - 2))
    for limit, letter in ((1_000_000_000, "G"), (1_000_000, "M")):
        if rounded >= limit:
            return f"{rounded / limit:g} {letter}"
    return f"{rounded:,}"
