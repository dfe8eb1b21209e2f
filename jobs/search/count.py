"""How many jobs a query finds: exact as long as that is cheap, else estimated, and always labelled with which it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
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
    """Exact up to `cap`; beyond it the planner's estimate. Two short statements at most."""
    places = [place.order_by() for place in sources(query, query.due, using)]
    if not places:
        return Count(0, "exact")
    least = 0
    with suppress(TooSlow), bounded(using, PATIENCE):
        least = _together([place[: cap + 1] for place in places])[: cap + 1].count()
        if least <= cap:
            return Count(least, "exact")
    # What is in payloads the planner cannot guess.
    guess = 0 if query.payloads else _estimate(places, using)
    if guess > least:
        return Count(guess, "estimated")
    return Count(cap, "at least") if least else Count(None, "unknown")


def _estimate(places: Sequence[QuerySet[Any]], using: str) -> int:
    """What the planner thinks; within a factor of two most of the time, so it is never the only thing to go by."""
    with suppress(TooSlow), bounded(using, PATIENCE):
        return int(json.loads(_together(places).explain(format="json"))[0]["Plan"]["Plan Rows"])
    return 0


def _together(places: Sequence[QuerySet[Any]]) -> QuerySet[Any]:
    """No job is in two of them."""
    return places[0].union(*places[1:], all=True) if len(places) > 1 else places[0]


def _short(number: int) -> str:
    """Two digits are what an estimate knows."""
    rounded = round(number, -(len(str(number)) - 2))
    for limit, letter in ((1_000_000_000, "G"), (1_000_000, "M")):
        if rounded >= limit:
            return f"{rounded / limit:g} {letter}"
    return f"{rounded:,}"
