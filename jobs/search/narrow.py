"""Narrow: terms that no index serves, judged row by row among those that the others find: how late, how long, which
attempt, when next, and the named views of waiting and running jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, Subquery
from django.db.models.functions import Greatest, Now

from jobs.models import Job, Parked, Process
from jobs.search.compile import Query
from jobs.search.window import Window

OVERDUE = timedelta(seconds=10)


def may_be_timers(query: Query) -> bool:
    """Whether jobs that were never dispatched can fit."""
    started = query.actions or query.workers or query.named or query.ran
    return not started and (query.attempts is None or query.attempts.holds(0))


def timers(found: Any, query: Query) -> Any:
    if query.run:  # what was never dispatched runs when it is due
        found = found.filter(due_at__gte=query.run.start, due_at__lt=query.run.end)
    return found.filter(**query.late.before("due_at", query.now)) if query.late else found


def entries(found: Any, query: Query) -> Any:
    if query.run:
        found = found.filter(run_at__gte=query.run.start, run_at__lt=query.run.end)
    if query.attempts:
        found = found.filter(**query.attempts.lookups("attempt"))
    if query.ran:
        found = found.filter(lease_token__isnull=False, **query.ran.before("claimed_at", query.now))
    if query.late:
        # Late is who waits, or began, after the time that it was to run at: of a retry, after its back-off.
        waits = Q(lease_token__isnull=True, **query.late.before("run_at", query.now))
        found = found.filter(
            waits | Q(lease_token__isnull=False, **query.late.after("claimed_at", F("run_at")))
        )
    if query.named == "overdue":
        found = found.filter(run_at__lt=Now() - OVERDUE, parked__isnull=True)
    elif query.named == "held":
        found = found.filter(_held(query))
    elif query.named == "stuck":
        live = Process.objects.filter(
            pk=OuterRef("process_id"), ended_at__isnull=True, lease_expires_at__gt=Now()
        )
        found = found.filter(~Exists(live))
    return found


def outcomes(found: Any, query: Query, window: Window) -> Any:
    if query.attempts:
        found = found.filter(**query.attempts.lookups("attempt"))
    if query.ran:
        found = found.filter(**query.ran.after("finished_at", F("started_at")))
    if query.late:
        # When a later attempt was to start is not kept: those are late on purpose. What began in time after its due time
        # did so after its birth as well, so that only of the others the job is looked at, one by one: a join reads a day.
        if query.late.least is not None:
            found = found.filter(started_at__gte=F("due_at") + query.late.least)
        here = {"due_at": OuterRef("due_at"), "due_at__gte": window.start, "due_at__lt": window.end}
        born = Subquery(Job.objects.filter(pk=OuterRef("job_id"), **here).values("created_at")[:1])
        late = query.late.after("started_at", Greatest(F("due_at"), born))
        found = found.filter(attempt__lte=1, **late)
    return found


def _held(query: Query) -> Q:
    if query.held is None:
        return Q()
    found = Q(parked=Parked.HOLD)
    for lookup, values in query.held:
        found |= Q(**{lookup: values})
    return found
