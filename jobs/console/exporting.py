"""The addresses that export a list: asked for by POST, since each leaves a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.defaults import permission_denied

from jobs import operator
from jobs.console import export
from jobs.console.origin import person
from jobs.scope import scope_of
from jobs.search import SearchError, compile_query
from jobs.search.guard import bounded

if TYPE_CHECKING:
    from jobs.console.actions import OperatorActionAdmin
    from jobs.console.jobs import JobAdmin

_LINE = 1000
AUDIT: export.Columns = {
    "id": lambda action: action.pk,
    "at": lambda action: action.at,
    "verb": lambda action: action.verb,
    "result": lambda action: str(action.result),
    "who": lambda action: action.actor_name,
    "through": lambda action: action.via,
    "address": lambda action: action.address,
    "reason": lambda action: action.reason,
    "target": lambda action: action.target,
    "before": lambda action: action.before,
    "after": lambda action: action.after,
    "operation": lambda action: action.operation_id,
    "matched": lambda action: action.matched,
    "changed": lambda action: action.changed,
    "requested": lambda action: action.requested,
    "left_alone": lambda action: action.skipped,
}


def jobs(admin: JobAdmin, request: HttpRequest) -> Any:
    """Of what the line `q` finds."""
    if not admin.has_view_permission(request):
        raise PermissionDenied
    line = request.POST.get("q", "")
    back = f"{reverse('admin:jobs_job_changelist')}?{urlencode({'q': line[:500]})}"
    if refused := _refusal(request, {"query": line[:_LINE]}):
        return refused
    try:
        query = compile_query(line, timezone.now(), scope=scope_of(request.user))
    except SearchError as error:
        return _told(admin, request, f"Nothing was exported: {error}", back)
    return _send(admin, request, "jobs", export.JOB, export.found(query), {"query": str(query)[:_LINE]}, back)


def audit(admin: OperatorActionAdmin, request: HttpRequest) -> Any:
    """Of what the list's filters leave."""
    if not admin.has_view_permission(request):
        raise PermissionDenied
    asked = {
        name: text for name in ("verb", "result", "q") if (text := request.POST.get(name, "")[:150].strip())
    }
    target = {"audit": asked}
    if refused := _refusal(request, target):
        return refused
    rows = admin.get_queryset(request).order_by("-pk")
    names = {"verb": "verb", "result": "result", "q": "actor_name"}
    rows = rows.filter(**{names[name]: text.replace("\0", "") for name, text in asked.items()})
    back = f"{reverse('admin:jobs_operatoraction_changelist')}?{urlencode(asked)}"
    return _send(admin, request, "audit", AUDIT, _actions(rows), target, back)


def _actions(rows: Any) -> Any:
    """The latest first, page by page."""
    last, sent = None, 0
    while sent < export.ROWS:
        page = rows if last is None else rows.filter(pk__lt=last)
        with bounded(rows.db):
            found = list(page[: export.PAGE])
        yield from found
        sent += len(found)
        if len(found) < export.PAGE:
            return
        last = found[-1].pk
    yield export.Cut(f"{export.ROWS:,} rows are the most: there may be more", str(last))


def _refusal(request: HttpRequest, target: dict[str, Any]) -> HttpResponse | None:
    try:
        operator.require(person(request), export.PERMISSION, "export", target)
    except operator.Denied as error:
        return permission_denied(request, error)
    return None


def _send(
    admin: Any,
    request: HttpRequest,
    name: str,
    columns: export.Columns,
    rows: Any,
    target: dict[str, Any],
    back: str,
) -> HttpResponse | StreamingHttpResponse:
    form = request.POST.get("format", "csv")
    if form not in export.TYPES:
        return _told(
            admin, request, f"Nothing was exported: there are {' and '.join(export.TYPES)} alone.", back
        )
    sent = export.response(name, form, columns, rows)
    if sent is None:
        return _told(
            admin, request, "Nothing was exported: others export just now. Try again in a minute.", back
        )
    try:
        operator.record(person(request), "export", {**target, "format": form}, matched=0)
    except BaseException:
        sent.close()
        raise
    return sent


def _told(admin: Any, request: HttpRequest, text: str, back: str) -> HttpResponseRedirect:
    admin.message_user(request, text, messages.ERROR)
    return HttpResponseRedirect(back)
