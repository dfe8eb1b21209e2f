"""Saved searches: kept under a name by whoever may see jobs, shared by whoever may share."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from jobs.models import SavedView
from jobs.search import SearchError, parse
from jobs.text import storable

if TYPE_CHECKING:
    from jobs.console.jobs import JobAdmin

MOST = 100
"""Views of one user."""


def save(admin: JobAdmin, request: HttpRequest) -> HttpResponse:
    """Under a name that its owner has already, it replaces that one."""
    if not admin.has_view_permission(request):
        raise PermissionDenied
    name = storable(request.POST.get("name", "").strip(), 60)
    line = request.POST.get("query", "").strip()
    shared = "shared" in request.POST and request.user.has_perm("jobs.share_view")
    problem = _problem(name, line, request)
    if problem:
        admin.message_user(request, f"Not saved: {problem}", messages.ERROR)
    else:
        SavedView.objects.update_or_create(
            owner_id=request.user.pk, name=name, defaults={"query": line, "shared": shared}
        )
        admin.message_user(request, f"Saved as {name}.", messages.SUCCESS)
    return HttpResponseRedirect(f"{reverse('admin:jobs_job_changelist')}?{urlencode({'q': line[:500]})}")


def forget(admin: JobAdmin, request: HttpRequest, pk: int) -> HttpResponse:
    """Its owner's own alone."""
    if not admin.has_view_permission(request):
        raise PermissionDenied
    gone, _ = SavedView.objects.filter(pk=pk, owner_id=request.user.pk).delete()
    told = "The saved search is gone." if gone else "There is no saved search of yours with this number."
    admin.message_user(request, told, messages.SUCCESS if gone else messages.ERROR)
    return HttpResponseRedirect(reverse("admin:jobs_job_changelist"))


def _problem(name: str, line: str, request: HttpRequest) -> str:
    if not name or not line:
        return "a saved search has a name and a line."
    try:
        parse(line)
    except SearchError as error:
        return str(error)
    others = SavedView.objects.filter(owner_id=request.user.pk).exclude(name=name)
    return f"you have {MOST} already; delete one first." if others.count() >= MOST else ""
