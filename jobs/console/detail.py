"""What is known about one job, gathered in a handful of statements that each visit its own day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.http import HttpRequest

from jobs.console import facts, redact
from jobs.ids import due_of
from jobs.models import Attempt, Job, OperatorAction
from jobs.operator import COMMANDS, REVEAL
from jobs.states import CANCELLABLE, FINAL, RETRYABLE, JobState
from jobs.why import judge

ATTEMPTS = 10
_MOMENT = timedelta(milliseconds=1)


class Button(NamedTuple):
    verb: str
    label: str
    permission: str
    allowed: bool


def find(job_id: UUID) -> Any | None:
    """The job with its state, tenant and the rows beside it, in one statement."""
    due_at = due_of(job_id)
    jobs = Job.objects.with_state(due_at, due_at + _MOMENT).filter(pk=job_id)
    return jobs.select_related("tenant", "timer", "entry", "outcome").first()


def find_many(ids: Sequence[UUID]) -> list[Any]:
    dues = [due_of(job_id) for job_id in ids]
    jobs = Job.objects.with_state(min(dues), max(dues) + _MOMENT).filter(pk__in=ids)
    return list(jobs.defer("payload").select_related("tenant").order_by("due_at", "id"))


def context(request: HttpRequest, job: Any, *, reveal: bool) -> dict[str, Any]:
    page = _page(request)
    attempts = _attempts(job, page)
    result = getattr(getattr(job, "outcome", None), "result", None)
    render = redact.values if reveal else redact.shape
    return {
        "title": job.job_type,
        "job": job,
        "buttons": _buttons(request.user, job),
        "sections": [facts.asked(job), facts.place(job), *_why(job), *facts.commands(_actions(job))],
        "payload": render(job.payload),
        "result": None if result is None else render(result),
        "revealed": reveal,
        "reveal": Button("reveal", "Show values …", REVEAL, request.user.has_perm(REVEAL)),
        "attempts": attempts[:ATTEMPTS],
        "attempts_older": page + 1 if len(attempts) > ATTEMPTS else None,
        "attempts_newer": page - 1 if page > 1 else None,
    }


def _buttons(user: AbstractBaseUser | AnonymousUser, job: Any) -> list[Button]:
    """What can be done to a job in this state; the others are not shown."""
    state = JobState(job.state)
    fitting = [("retry", "Retry …", RETRYABLE), ("cancel", "Cancel …", CANCELLABLE)]
    return [
        Button(verb, label, COMMANDS[verb].permission, user.has_perm(COMMANDS[verb].permission))  # type: ignore[union-attr]
        for verb, label, states in fitting
        if state in states
    ]


def _why(job: Any) -> list[facts.Section]:
    """What keeps it from running, where it has not ended."""
    if JobState(job.state) in FINAL:
        return []
    place = getattr(job, "entry", None) or getattr(job, "timer", None)
    return [facts.why(judge(place, job._state.db or "default"))]


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
