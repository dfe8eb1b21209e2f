"""Failures in groups: one line for what went wrong in the same way, however often."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone

from jobs import clock
from jobs.console import sections, show
from jobs.console.amounts import Count
from jobs.console.charts import Chart, Series, columns
from jobs.console.deploys import Deploy, after, before
from jobs.console.reading import rows
from jobs.console.remember import remembered
from jobs.models import TriageState
from jobs.sql import load
from jobs.triage import BACK, NEW, standing

SPANS = {"1h": timedelta(hours=1), "24h": timedelta(hours=24), "7d": timedelta(days=7)}
DEFAULT = "24h"
BUCKETS = 24
CAP = 10_000
GROUPS = 50
LOOK_BACK = timedelta(days=7)
"""A job may fail so long after it was due and still be found."""

_VARYING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.I), "<id>"),
    (re.compile(r"0x[0-9a-f]+|\b(?=[0-9a-f]*\d)[0-9a-f]{12,}\b", re.I), "<hex>"),
    (re.compile(r"'[^']{1,200}'|\"[^\"]{1,200}\""), "<text>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "<n>"),
)


def pattern(message: str) -> str:
    """A message without what varies from one job to the next: ids, numbers and quoted texts."""
    for found, instead in _VARYING:
        message = found.sub(instead, message)
    return message


@dataclass(frozen=True)
class Said:
    """What people have said of a group."""

    owner: str
    note: str
    by: str
    at: datetime
    until: datetime | None


@dataclass(frozen=True)
class Group:
    fingerprint: str | None
    job_type: str | None
    tenant: str | None
    message: str
    pattern: str
    count: int
    first: datetime
    last: datetime
    attempts: int
    job_id: UUID
    buckets: Sequence[int]
    """Failures in each of BUCKETS equal parts of the window."""
    standing: str = NEW
    """new, known, ignored, mended or back."""
    said: Said | None = None

    @property
    def is_news(self) -> bool:
        """Nobody has dealt with it, or it is back."""
        return self.standing in (NEW, BACK)

    @property
    def is_ignored(self) -> bool:
        return self.standing == TriageState.IGNORED


@dataclass(frozen=True)
class Failures:
    groups: Sequence[Group]
    count: Count
    since: datetime
    """What was looked at begins here: later than the window when the cap was met."""
    until: datetime
    deploys: Sequence[Deploy] = ()
    """In the window, in their order."""

    @property
    def news(self) -> list[Group]:
        return [group for group in self.groups if group.is_news]


@remembered(5)
def failures(span: str, using: str = "default") -> Failures:
    """The groups of the last hour, day or week, the largest first."""
    until = clock.now(using).replace(microsecond=0) + timedelta(seconds=1)
    since = until - SPANS[span]
    found = rows(
        load("console/failures"),
        {
            "since": since, "until": until, "start": since - LOOK_BACK, "end": until,
            "cap": CAP, "buckets": BUCKETS, "groups": GROUPS,
        },
        using,
    )  # fmt: skip
    groups = [_group(row, until) for row in found]
    deploys = (
        [Deploy(datetime.fromisoformat(at), name or "") for at, name in (found[0][19] or [])] if found else []
    )
    seen, first = (found[0][11], found[0][12]) if found else (0, since)
    count = Count(seen, CAP)
    return Failures(_merged(groups), count, first if count.is_capped else since, until, deploys)


def gather(request: HttpRequest) -> dict[str, Any]:
    asked = request.GET.get("span", "")
    span = asked if asked in SPANS else DEFAULT
    found = failures(span)
    cards = [Card.of(group, span, found) for group in found.groups]
    return {
        "span": span,
        "spans": list(SPANS),
        "failures": found,
        "cards": [card for card in cards if not card.group.is_ignored],
        "ignored": [card for card in cards if card.group.is_ignored],
        "may_triage": request.user.has_perm("jobs.triage_error"),
        "retry_all": sections.address("jobs_operation_new", verb="retry")
        if request.user.has_perm("jobs.bulk_job")
        else "",
        "retrying": retrying(),
        "look_back": LOOK_BACK.days,
    }


@dataclass(frozen=True)
class Card:
    """A group as the page shows it."""

    group: Group
    trend: Chart
    line: str
    """The search that finds its jobs; empty where there is no fingerprint to search by."""
    since: Deploy | None
    """All of it came after this deploy, and none before."""
    until: Deploy | None
    """None of it came after this one."""

    @classmethod
    def of(cls, group: Group, span: str, found: Failures) -> Card:
        return cls(
            group,
            trend(group, span, found),
            found_by(group, span),
            None if found.count.is_capped else before(found.deploys, group.first),
            after(found.deploys, group.last),
        )


@dataclass(frozen=True)
class Retrying:
    job_type: str
    fingerprint: str | None
    error_class: str
    message: str
    count: int
    first: datetime
    last: datetime
    next_at: datetime
    attempt: int
    job_id: UUID


@remembered(5)
def retrying(using: str = "default") -> list[Retrying]:
    now = clock.now(using)
    found = rows(
        load("console/retrying"),
        {"each": 500, "cap": 1000, "start": now - timedelta(days=31), "end": now + timedelta(days=1)},
        using,
    )
    return [Retrying(row[0], row[1], show.clean(row[2]), show.clean(row[3]), *row[4:]) for row in found]


def _group(row: Sequence[Any], now: datetime) -> Group:
    fingerprint, count, first, last, buckets, job_id, _due_at, error, attempt, job_type, slug = row[:11]
    message = show.clean(error or "(no message)")
    values = [int(buckets.get(str(n + 1), 0)) for n in range(BUCKETS)]
    state, until, at, owner, note, by = row[13:19]
    return Group(
        fingerprint, job_type, slug, message, pattern(message), count, first, last, attempt, job_id, values,
        standing(state, until, at, last, now), None if state is None else Said(owner, note, by, at, until),
    )  # fmt: skip


def trend(group: Group, span: str, found: Failures) -> Chart:
    """When in the window it happened, and when something new was deployed."""
    step, start = SPANS[span] / BUCKETS, found.until - SPANS[span]
    labels = [f"{timezone.localtime(start + n * step):%d %b %H:%M}" for n in range(BUCKETS)]
    marks = [((each.at - start) / SPANS[span], each.told) for each in found.deploys]
    return columns("failures", labels, [Series("failed", "bad", group.buckets)], events=marks)


def found_by(group: Group, span: str) -> str:
    """The search that finds these jobs; empty where there is no fingerprint to search by."""
    return f"state:failed error:{group.fingerprint} finished:last-{span}" if group.fingerprint else ""


def _merged(groups: Sequence[Group]) -> list[Group]:
    """Those without a fingerprint are one when their messages differ only in what varies."""
    kept: dict[Any, Group] = {}
    for each in groups:
        key = each.fingerprint or (each.job_type, each.pattern)
        if (known := kept.get(key)) is None:
            kept[key] = each
        else:
            latest = max(known, each, key=lambda group: group.last)
            kept[key] = Group(
                **{
                    **latest.__dict__,
                    "count": known.count + each.count,
                    "first": min(known.first, each.first),
                    "buckets": [a + b for a, b in zip(known.buckets, each.buckets, strict=True)],
                }
            )
    return sorted(kept.values(), key=lambda group: (-group.count, group.pattern))
