"""Retry, cancel and reveal: asked for by POST, confirmed with a reason, done by `jobs.operator`. GET does nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.defaults import permission_denied

from jobs import operator
from jobs.console import detail, named
from jobs.console.arguments import Arguments
from jobs.console.origin import person
from jobs.errors import SchedulerError, TooManyReveals
from jobs.scope import scope_of
from jobs.text import storable

if TYPE_CHECKING:
    from jobs.console.jobs import JobAdmin

EFFECTS = {
    "retry": "Failed and cancelled jobs go back to their queues and run again. All others are left alone.",
    "cancel": "Waiting jobs end as cancelled at once. Running ones are asked to stop. Ended ones are left alone.",
    "reschedule": "Waiting jobs run at this time instead. Running and ended ones are left alone.",
    "prioritize": "Waiting jobs get this priority, within their tenant and queue. All others are left alone.",
    "move": "Waiting jobs are put into this queue. Running and ended ones are left alone.",
    "reveal": "The values of payload and result are shown once; those of secrets stay hidden.",
}


class CommandForm(Arguments):
    reason = forms.CharField(
        label="Reason",
        max_length=operator.REASON_BYTES,
        help_text="Kept in the audit, for whoever asks later.",
        widget=forms.TextInput(attrs={"class": "vTextField", "autofocus": True}),
    )

    def __init__(self, verb: str, data: Any = None) -> None:
        super().__init__(verb, data)
        self.fields["reason"].required = verb == "reveal"


def view(admin: JobAdmin, request: HttpRequest, verb: str) -> HttpResponse:
    """The address of all three: first it asks, then, confirmed, it does."""
    if verb not in EFFECTS:
        raise Http404
    if not admin.has_view_permission(request):
        raise PermissionDenied
    texts = request.POST.getlist(ACTION_CHECKBOX_NAME)
    if refused := refusal(request, verb, texts):
        return refused
    person(request)
    ids, problem = _read(texts)
    if problem:
        admin.message_user(request, problem, messages.ERROR)
        return HttpResponseRedirect(_back(request))
    form = CommandForm(verb, request.POST if "confirmed" in request.POST else None)
    if not form.is_valid():
        return _ask(admin, request, verb, ids, form)
    if verb == "reveal":
        if detail.find(ids[0], scope_of(request.user)) is not None:
            try:
                operator.reveal(request.user, ids[0], form.cleaned_data["reason"])
            except TooManyReveals as error:
                admin.message_user(request, f"Nothing was shown: {error}.", messages.ERROR)
                return HttpResponseRedirect(_back(request))
        return admin.detail(request, str(ids[0]), reveal=True)
    _do(admin, request, verb, ids, form)
    return HttpResponseRedirect(_back(request))


def ask_ticked(admin: JobAdmin, request: HttpRequest, verb: str) -> HttpResponse | None:
    """The confirm page for the rows that were ticked; for none but these, whatever the filter would find."""
    ids, problem = _read(request.POST.getlist(ACTION_CHECKBOX_NAME))
    if problem:
        admin.message_user(request, problem, messages.ERROR)
        return None
    return _ask(admin, request, verb, ids, CommandForm(verb))


def refusal(request: HttpRequest, verb: str, texts: Sequence[str]) -> HttpResponse | None:
    """The page of a denied attempt, after it was recorded. Returned, not raised, so that a request's transaction
    keeps the record."""
    needed = operator.REVEAL if verb == "reveal" else operator.COMMANDS[verb].permission
    try:
        operator.require(
            person(request), needed, verb, {"jobs": [storable(text, 40) for text in texts[: operator.LIMIT]]}
        )
    except operator.Denied as error:
        return permission_denied(request, error)
    return None


def _do(admin: JobAdmin, request: HttpRequest, verb: str, ids: list[UUID], form: CommandForm) -> None:
    try:
        _, report = operator.act(request.user, verb, ids, form.cleaned_data["reason"], **form.arguments())
    except SchedulerError as error:
        admin.message_user(request, f"Nothing was changed: {error}", messages.ERROR)
        return
    level = messages.WARNING if report.skipped else messages.SUCCESS
    admin.message_user(request, report.describe(operator.COMMANDS[verb].done), level)


def _ask(
    admin: JobAdmin, request: HttpRequest, verb: str, ids: list[UUID], form: CommandForm
) -> TemplateResponse:
    jobs = detail.find_many(ids, scope_of(request.user))
    count = "this job" if len(ids) == 1 else f"{len(ids)} jobs"
    context = {
        **admin.admin_site.each_context(request),
        "title": f"Reveal the payload of {count}" if verb == "reveal" else f"{verb.capitalize()} {count}",
        "opts": admin.opts,
        "media": admin.media,
        "verb": verb,
        "effect": EFFECTS[verb],
        "jobs": jobs,
        "ids": ids,
        "missing": sorted(set(ids) - {job.pk for job in jobs}),
        "form": form,
        "next": request.POST.get("next") or request.get_full_path(),
        "back": _back(request),
    }
    return TemplateResponse(request, "jobs/confirm.html", context)


def _read(texts: Sequence[str]) -> tuple[list[UUID], str]:
    """The ids, and what is wrong with them."""
    ids = [job_id for text in texts if (job_id := named.job_id(text)) is not None]
    if not texts or len(ids) < len(texts):
        return [], "No job was named." if not texts else "What was sent is not a list of job ids."
    if len(set(ids)) > operator.LIMIT:
        return [], f"{len(set(ids))} jobs were ticked; one command takes at most {operator.LIMIT}."
    return sorted(set(ids)), ""


def _back(request: HttpRequest) -> str:
    """Where the operator came from, if that is here."""
    wanted = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure()):
        return wanted
    return reverse("admin:jobs_job_changelist")
