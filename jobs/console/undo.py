"""Undo of a changed limit: offered with the change and in the audit, asked for on a page of its own, done by POST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.views.defaults import permission_denied

from jobs import limiting, operator, undoing
from jobs.console import password, show
from jobs.console.origin import person
from jobs.errors import ActionNotFound, SchedulerError
from jobs.models import OperatorAction, Queue, Tenant

if TYPE_CHECKING:
    from jobs.console.actions import OperatorActionAdmin


class UndoForm(forms.Form):
    reason = forms.CharField(
        required=False,
        max_length=operator.REASON_BYTES,
        help_text="Kept in the audit, for whoever asks later.",
        widget=forms.TextInput(attrs={"class": "vTextField"}),
    )


def view(admin: OperatorActionAdmin, request: HttpRequest, pk: int) -> HttpResponse:
    """GET asks, POST does."""
    user = person(request)
    try:
        action = undoing.change(user, pk)
        names = undoing.names_of(action)
        operator.require(user, operator.limits_permission(names), "undo limit", {**names, "action": pk})
    except ActionNotFound as error:
        raise Http404(str(error)) from error
    except operator.Denied as error:  # returned, not raised, so that a request's transaction keeps the record
        return permission_denied(request, error)
    form = UndoForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        return password.ask(admin, request) or _undo(admin, request, pk, form.cleaned_data["reason"])
    context = {
        **admin.admin_site.each_context(request),
        "title": "Undo a change of limits",
        "opts": admin.opts,
        "media": admin.media,
        "section": "audit",
        "action": action,
        "whose": " in ".join(f"{kind} {show.visible(name)}" for kind, name in names.items()),
        "changes": show.changes(action.after, action.before),
        "form": form,
    }
    return TemplateResponse(request, "jobs/undo.html", context)


def offer(admin: Any, request: HttpRequest, row: limiting.Limited, action: OperatorAction) -> None:
    """The message after a change: what to know of the limits now, and the way back."""
    warning = limiting.warning_of(row)
    level = messages.WARNING if warning else messages.SUCCESS
    told, url = (
        warning or "The limits were changed.",
        reverse("admin:jobs_operatoraction_undo", args=[action.pk]),
    )
    admin.message_user(request, format_html('{} <a href="{}">Undo …</a>', told, url), level)


def url_for(user: Any, object_id: str) -> str:
    """Where this user can take back this action; empty: nowhere."""
    if not (object_id.isascii() and object_id.isdigit() and len(object_id) < 19):
        return ""
    try:
        action = undoing.change(user, int(object_id))
    except ActionNotFound:
        return ""
    may = user.has_perm(operator.limits_permission(undoing.names_of(action)))
    return reverse("admin:jobs_operatoraction_undo", args=[action.pk]) if may else ""


def _undo(admin: Any, request: HttpRequest, pk: int, reason: str) -> HttpResponse:
    try:
        row, action = undoing.undo(request.user, pk, reason)
    except SchedulerError as error:
        admin.message_user(request, f"Nothing was changed: {error}.", messages.ERROR)
        return HttpResponseRedirect(request.path)
    offer(admin, request, row, action)
    return HttpResponseRedirect(_page_of(row))


def _page_of(row: limiting.Limited) -> str:
    if isinstance(row, Queue):
        return reverse("admin:jobs_queue_change", args=[row.pk])
    return reverse("admin:jobs_tenant_change", args=[row.pk if isinstance(row, Tenant) else row.tenant_id])
