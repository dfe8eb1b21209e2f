"""Why they wait: not one job but all that wait in a queue, of a tenant or anywhere, by their reasons."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest

from jobs.clock import boottime
from jobs.console import gates, show
from jobs.console.reading import rows
from jobs.console.remember import remembered
from jobs.models import QueueEntry, Tenant
from jobs.rules import Reason
from jobs.scope import scope_of
from jobs.sql import load
from jobs.why import judge_waiting

EACH = 200
"""Jobs looked at of each queue, or of each tenant in each queue."""
QUEUES, TENANTS, ASIDE = 50, 50, 2000
KINDS, BATCH = 20, 7
"""Of so many kinds (queue, tenant, type) the oldest job is asked, so many in a statement."""
_PLACE = re.compile(r", (far back|\S+) in line$|; this one is next at .*$")
SECONDS = 1.0
"""Longest time that asking takes."""


@dataclass
class Cause:
    """One reason and the jobs that have it."""

    reason: Reason
    url: str
    link: str
    jobs: int = 0
    kinds: int = 0
    oldest: datetime | None = None
    job_id: UUID | None = None

    @property
    def told(self) -> str:
        text = show.clean(self.reason.text)
        return text[:1].upper() + text[1:]


@dataclass(frozen=True)
class Waiting:
    causes: Sequence[Cause] = ()
    looked: int = 0
    asked: int = 0
    """Jobs of the kinds whose oldest was asked."""
    kinds: int = 0
    kinds_asked: int = 0


@remembered(5)
def waiting(queue: str | None, tenants: tuple[int, ...] | None, using: str = "default") -> Waiting:
    """The reasons, the most frequent first: all jobs of a kind count as its oldest, which is asked by the claim's own
    rules. `tenants`: their ids; None: all."""
    found = rows(
        load("console/waiting"),
        {
            "queue": queue, "tenants": None if tenants is None else list(tenants), "each": EACH, "queues": QUEUES,
            "cap": ASIDE, "kinds": KINDS,
        },
        using,
    )  # fmt: skip
    if not found:
        return Waiting()
    entries = QueueEntry.objects.using(using).filter(lease_token=None).in_bulk([row[0] for row in found])
    kinds = [(entries[job_id], jobs, oldest) for job_id, jobs, oldest, *_ in found if job_id in entries]
    causes: dict[tuple[str, str], Cause] = {}
    until, asked, judged = boottime() + SECONDS, 0, 0
    for start in range(0, len(kinds), BATCH):
        if boottime() > until:
            break  # told as not asked, as what was taken meanwhile
        batch = kinds[start : start + BATCH]
        said = judge_waiting([entry for entry, _, _ in batch], using)
        for (entry, jobs, oldest), why in zip(batch, said, strict=True):
            reason = _without_place(why.headline)
            cause = causes.setdefault((reason.code, reason.text), Cause(reason, *gates.fix(reason, entry)))
            cause.jobs, cause.kinds, asked, judged = (
                cause.jobs + jobs,
                cause.kinds + 1,
                asked + jobs,
                judged + 1,
            )
            if cause.oldest is None or oldest < cause.oldest:
                cause.oldest, cause.job_id = oldest, entry.job_id
    ordered = sorted(causes.values(), key=lambda cause: -cause.jobs)
    return Waiting(ordered, int(found[0][3]), asked, int(found[0][4]), judged)


def _without_place(reason: Reason) -> Reason:
    """What is true of the whole kind: not where its oldest stands in line."""
    return replace(reason, text=_PLACE.sub("", reason.text))


def gather(request: HttpRequest) -> dict[str, Any]:
    queue = request.GET.get("queue", "").replace("\0", "")[:100] or None
    slug = request.GET.get("tenant", "").replace("\0", "")[:100] or None
    ids = _tenants(slug, scope_of(request.user))
    return {
        "queue": queue,
        "tenant": slug,
        "is_known": ids is None or bool(ids),
        "waiting": waiting(queue, ids) if ids is None or ids else Waiting(),
        "each": EACH,
    }


def _tenants(slug: str | None, seen: Collection[int] | None) -> tuple[int, ...] | None:
    """Of the tenant that was asked for, if it exists for who asks, or of all that do; None: every one."""
    if slug is not None:
        found = Tenant.objects.filter(slug=slug)
        found = found if seen is None else found.filter(pk__in=seen)
        return tuple(found.values_list("pk", flat=True))
    return None if seen is None else tuple(sorted(seen)[:TENANTS])
