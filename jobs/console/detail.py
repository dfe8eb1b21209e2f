"""What is known about one job, gathered in a handful of statements that each visit its own day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.http import HttpRequest

from jobs.console import facts, gates, redact, timeline
from jobs.ids import due_of
from jobs.models import Attempt, Job, OperatorAction
from jobs.operator import COMMANDS, REVEAL
from jobs.registry import registry
from jobs.scope import Scope, scope_of
from jobs.states import CANCELLABLE, FINAL, RETRYABLE, WAITING, JobState
from jobs.why import judge

ATTEMPTS = 10
_MOMENT = timedelta(milliseconds=1)


class Button(NamedTuple):
    verb: str
    label: str
    permission: str
    allowed: bool


def find(job_id: UUID, seen: Scope) -> Any | None:
    """The job with its state, tenant and the rows beside it, in one statement; None as well when its tenant is not
    among those that are seen."""
    due_at = due_of(job_id)
    jobs = Job.objects.with_state(due_at, due_at + _MOMENT).filter(pk=job_id)
    if seen is not None:
        jobs = jobs.filter(tenant_id__in=seen)
    return jobs.select_related("tenant", "timer", "entry", "outcome").first()


def find_many(ids: Sequence[UUID], seen: Scope) -> list[Any]:
    dues = [due_of(job_id) for job_id in ids]
    jobs = Job.objects.with_state(min(dues), max(dues) + _MOMENT).filter(pk__in=ids)
    if seen is not None:
        jobs = jobs.filter(tenant_id__in=seen)
    return list(jobs.defer("payload").select_related("tenant").order_by("due_at", "id"))


def context(request: HttpRequest, job: Any, *, reveal: bool) -> dict[str, Any]:
    """What stays as it is while the page is open: the commands and the payload."""
    result = getattr(getattr(job, "outcome", None), "result", None)
    known = registry.get(job.job_type)
    shown = known.shown if known else ()

    def render(value: Any) -> str:
        return redact.values(value) if reveal else redact.shape(value, shown)

    return {
        "title": job.job_type,
        "job": job,
        "buttons": _buttons(request.user, job),
        "payload": render(job.payload),
        "result": None if result is None else render(result),
        "revealed": reveal,
        "reveal": Button("reveal", "Show values …", REVEAL, request.user.has_perm(REVEAL)),
    }


def live(request: HttpRequest, job: Any) -> dict[str, Any]:
    """Where the job is, why it waits, and what became of it so far."""
    page = _page(request)
    attempts = _attempts(job, page)
    actions = _actions(job)
    return {
        "job": job,
        "why": _why(job),
        "sections": [
            facts.asked(job, scope_of(request.user) is None),
            facts.place(job),
            *facts.commands(actions),
        ],
        "events": timeline.events(job, attempts[:ATTEMPTS], actions),
        "attempts": attempts[:ATTEMPTS],
        "attempts_older": page + 1 if len(attempts) > ATTEMPTS else None,
        "attempts_newer": page - 1 if page > 1 else None,
    }


def _buttons(user: AbstractBaseUser | AnonymousUser, job: Any) -> list[Button]:
    """What can be done to a job in this state; the others are not shown."""
    state = JobState(job.state)
    fitting = [
        ("retry", "Retry …", RETRYABLE),
        ("cancel", "Cancel …", CANCELLABLE),
        ("reschedule", "Reschedule …", WAITING),
        ("prioritize", "Change priority …", WAITING),
        ("move", "Move to another queue …", WAITING),
    ]
    return [
        Button(verb, label, COMMANDS[verb].permission, user.has_perm(COMMANDS[verb].permission))  # type: ignore[union-attr]
        for verb, label, states in fitting
        if state in states
    ]


def _why(job: Any) -> gates.Panel | None:
    """What keeps it from running, where it has not ended."""
    if JobState(job.state) in FINAL:
        return None
    place = getattr(job, "entry", None) or getattr(job, "timer", None)
    return gates.panel(judge(place, job._state.db or "default"), job)


def _page(request: HttpRequest) -> int:
    text = request.GET.get("attempts", "")
    return min(max(int(text), 1), 1000) if text.isascii() and text.isdigit() and len(text) < 5 else 1


def _attempts(job: Any, page: int) -> list[Attempt]:
    """One more than a page of them, newest first. A job has few: counting places is cheap here."""
    start = (page - 1) * ATTEMPTS
    found = Attempt.objects.filter(job_id=job.pk).order_by("-attempt", "-finished_at")
    return list(found[start : start + ATTEMPTS + 1])


def _actions(job: Any) -> list[OperatorAction]:
    """The command that put the job where it is."""
    rows = (getattr(job, name, None) for name in ("entry", "outcome"))
    ids = [row.action_id for row in rows if row is not None and row.action_id is not None]
    return list(OperatorAction.objects.filter(pk__in=ids)) if ids else []
