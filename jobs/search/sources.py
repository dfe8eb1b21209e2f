"""Where the jobs of a query are looked for: each place by the index that gives them in order, never by a sort of all.

A job without a term about its state is read from the jobs; one in a state from the small table that says so. Timers and
entries bear tenant, type, queue and group themselves; an outcome is joined with its job.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from jobs.ids import first_id
from jobs.models import Job, Outcome, QueueEntry, Timer
from jobs.search import narrow
from jobs.search.compile import Query
from jobs.search.window import Window
from jobs.states import FINAL, JobState

_UNHAPPY = (JobState.FAILED, JobState.CANCELLED)
_IN_ENTRY = {
    JobState.RUNNING: Q(lease_token__isnull=False),
    JobState.QUEUED: Q(lease_token__isnull=True, run_at__lte=Now()),
    JobState.RETRYABLE: Q(lease_token__isnull=True, run_at__gt=Now(), waits="retry"),
    JobState.SCHEDULED: Q(lease_token__isnull=True, run_at__gt=Now())
    & (~Q(waits="retry") | Q(waits__isnull=True)),
}


def sources(query: Query, window: Window, using: str, *, by_end: bool = False) -> list[QuerySet[Any]]:
    """The places of `query`'s jobs due in `window`, each as rows (due_at, or `by_end` finished_at, and id). No job is in
    two of them."""
    if query.ids is not None and not query.ids:
        return []
    if query.states is None and not query.is_of_rows:
        return [_jobs(query, window, using)]
    states = query.states if query.states is not None else frozenset(JobState)
    return [*_waiting(query, window, states, using), *_ended(query, window, states, using, by_end)]


def _jobs(query: Query, window: Window, using: str) -> QuerySet[Any]:
    found: Any = Job.objects.using(using).due_between(window.start, window.end)
    found = found.filter(**query.wanted).exclude(*_any_of(query.unwanted))
    if query.ids is not None:
        found = found.filter(pk__in=query.ids)
    found = found.filter(_told_by_job(query))
    return found.annotate(at=F("due_at")).values_list("at", "id")  # type: ignore[no-any-return]


def _waiting(
    query: Query, window: Window, states: frozenset[JobState], using: str
) -> Iterator[QuerySet[Any]]:
    if query.finished or query.errors:
        return
    if JobState.SCHEDULED in states and narrow.may_be_timers(query):
        timers: Any = Timer.objects.using(using).filter(due_at__gte=window.start, due_at__lt=window.end)
        yield _satellites(narrow.timers(timers, query), query, window)
    if in_entries := states - FINAL:
        places = Q()
        if len(in_entries) < len(_IN_ENTRY):
            for state in sorted(in_entries):
                places |= _IN_ENTRY[state]
        # A range of ids is a range of due times: the key of the entries is in their order.
        entries: Any = QueueEntry.objects.using(using).filter(
            places, job_id__gte=first_id(window.start), job_id__lt=first_id(window.end)
        )
        if query.actions:
            entries = entries.filter(action_id__in=query.actions)
        if query.workers:
            entries = entries.filter(process_id__in=query.workers)
        yield _satellites(narrow.entries(entries, query), query, window)


def _ended(
    query: Query, window: Window, states: frozenset[JobState], using: str, by_end: bool
) -> Iterator[QuerySet[Any]]:
    """One place for each state that has an index of its own."""
    if query.workers or query.named:
        return
    final = states & FINAL
    kinds: list[frozenset[JobState]] = [frozenset({state}) for state in _UNHAPPY if state in final]
    if JobState.COMPLETED in final:
        kinds = [final]
    for kind in kinds:
        found: Any = narrow.outcomes(
            Outcome.objects.using(using).filter(**_outcomes(query, window, kind)), query, window
        )
        joined = {f"job__{lookup}": values for lookup, values in query.wanted.items()}
        unjoined = {f"job__{lookup}": values for lookup, values in query.unwanted.items()}
        told = _told_by_job(query, "job__")
        if joined or unjoined or told:
            found = found.filter(told, job__due_at__gte=window.start, job__due_at__lt=window.end, **joined)
            found = found.exclude(*_any_of(unjoined))
        yield found.annotate(at=F("finished_at" if by_end else "due_at")).values_list("at", "job_id")


def _outcomes(query: Query, window: Window, kind: frozenset[JobState]) -> dict[str, Any]:
    lookups: dict[str, Any] = {"due_at__gte": window.start, "due_at__lt": window.end}
    if len(kind) == 1:
        lookups["state"] = next(iter(kind)).value
    elif len(kind) < len(FINAL):
        lookups["state__in"] = sorted(state.value for state in kind)
    if query.finished:
        lookups |= {"finished_at__gte": query.finished.start, "finished_at__lt": query.finished.end}
    if query.errors:
        lookups["error_fingerprint__in"] = query.errors
    if query.actions:
        lookups["action_id__in"] = query.actions
    if query.ids is not None:
        lookups["job_id__in"] = query.ids
    return lookups


def _satellites(found: Any, query: Query, window: Window) -> QuerySet[Any]:
    found = found.filter(**query.wanted).exclude(*_any_of(query.unwanted))
    if query.ids is not None:
        found = found.filter(job_id__in=query.ids)
    if told := _told_by_job(query, "job__"):
        found = found.filter(told, job__due_at__gte=window.start, job__due_at__lt=window.end)
    return found.annotate(at=F("due_at")).values_list("at", "job_id")  # type: ignore[no-any-return]


def _told_by_job(query: Query, link: str = "") -> Q:
    """What no row beside the job knows. `link`: the way to it."""
    found = Q(**{f"{link}cron_id__in": query.crons}) if query.crons else Q()
    for each in query.payloads:
        found &= each.lookup(f"{link}payload")
    return found


def _any_of(lookups: dict[str, Any]) -> list[Q]:
    if not lookups:
        return []
    found = Q()
    for lookup, values in lookups.items():
        found |= Q(**{lookup: values})
    return [found]
