"""Bulk operations: previewed, started with a reason, watched, paused, stopped and undone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST
from django.views.defaults import permission_denied

from jobs import operations, operator
from jobs.console import password, show
from jobs.console.arguments import Arguments
from jobs.console.base import ReadOnly
from jobs.console.origin import person
from jobs.console.page import LIVE, fragment, in_zone, live_part, live_url
from jobs.console.places import NoPlace, place
from jobs.models import Operation, OperationState
from jobs.models.operation import OPEN, OVER
from jobs.operations.control import visible
from jobs.operations.holding import target_of
from jobs.operations.limits import APPROVE, BULK, RATE, RATES
from jobs.operations.preview import Preview
from jobs.search import SearchError
from jobs.search.guard import TooSlow
from jobs.search.terms import MAX_LENGTH, parse

EFFECTS = {
    "retry": "Failed and cancelled jobs go back to their queues and run again.",
    "cancel": "Waiting jobs end as cancelled. Running ones are asked to stop.",
    "reschedule": "Waiting jobs run at the given time instead.",
    "prioritize": "Waiting jobs get the given priority, within their tenant and queue.",
    "move": "Waiting jobs are put into the given queue.",
}
CONTROLS = {
    "approve": operations.approve,
    "pause": operations.pause,
    "resume": operations.resume,
    "stop": operations.stop,
    "undo": operations.undo,
}
HALTING = ("pause", "stop")
"""These are never kept waiting for a password."""
PIECES = 50
SOON = timedelta(seconds=5)
FOUND = ("retry", "cancel")
"""What these have changed is found by their number; a timer that was moved does not tell."""


class OperationForm(Arguments):
    reason = forms.CharField(
        max_length=operator.REASON_BYTES,
        help_text="Kept in the audit, for whoever asks later.",
        widget=forms.TextInput(attrs={"class": "vTextField"}),
    )
    rate = forms.IntegerField(
        label="Jobs a second",
        initial=RATE,
        min_value=RATES[0],
        max_value=RATES[-1],
        help_text="At most; lower it to spread the work.",
    )
    hold = forms.BooleanField(required=False)
    typed = forms.CharField(label="To confirm")

    field_order = ["run_at", "priority", "queue", "reason", "rate", "hold", "typed"]

    def __init__(
        self, verb: str, to_type: str | None, hold: tuple[str, str] | None, data: Any = None
    ) -> None:
        super().__init__(verb, data)
        if hold is None:
            del self.fields["hold"]
        else:
            name = f"{hold[0]} {show.visible(hold[1])}"
            self.fields["hold"].label = f"Hold {name} meanwhile"
            self.fields["hold"].initial = hold[0] == "group"
            self.fields[
                "hold"
            ].help_text = f"From now on nothing of {name} starts, also what this search does not find, until the operation is over or stopped."
        self.to_type = to_type
        if to_type is None:
            del self.fields["typed"]
        else:
            self.fields["typed"].help_text = f"Type {to_type}"

    def clean_typed(self) -> str:
        typed: str = self.cleaned_data["typed"].strip().replace(",", "")
        if typed != self.to_type:
            raise forms.ValidationError(f"This is not {self.to_type}: nothing was started.")
        return typed


class OperationAdmin(ReadOnly):
    mixes_tenants = False
    list_display = ("number", "what", "state_badge", "progress", "who", "started")
    list_display_links = ("number",)
    actions = None
    empty = "No operation yet. One begins with a search of jobs: retry, cancel or move all that fit."

    def get_queryset(self, request: HttpRequest) -> Any:
        return visible(request.user)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        return False

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("new/<slug:verb>/", view(in_zone(self.new_view)), name="jobs_operation_new"),
            path(
                "<int:object_id>/command/<slug:verb>/",
                view(require_POST(self.command_view)),
                name="jobs_operation_command",
            ),
            *super().get_urls(),
        ]

    def new_view(self, request: HttpRequest, verb: str) -> HttpResponse:
        """GET shows what would be done; POST, with a reason, starts it."""
        if verb not in EFFECTS:
            raise Http404
        if not self.has_view_permission(request):
            raise PermissionDenied
        user, line = person(request), (request.POST or request.GET).get("q", "")[: MAX_LENGTH + 1]
        for permission in (operator.COMMANDS[verb].permission, BULK):
            try:
                operator.require(user, permission, f"{verb} all", {"query": line})
            except operator.Denied as error:
                return permission_denied(request, error)
        context: dict[str, Any] = {
            "verb": verb,
            "line": line,
            "effect": EFFECTS[verb],
            "max_length": MAX_LENGTH,
        }
        found, problem = _preview(request, verb, line)
        if found is None:
            return self._page(request, "operation_new", context | problem)
        form = OperationForm(
            verb,
            found.to_type if found.must_type else None,
            target_of(verb, found.query, user),
            request.POST if request.method == "POST" else None,
        )
        if request.method == "POST" and form.is_valid():
            if asked := password.ask(self, request, f"{request.path}?{urlencode({'q': line})}"):
                return asked
            try:
                made = operations.submit(
                    user, verb, str(found.query), form.cleaned_data["reason"], rate=form.cleaned_data["rate"], arguments=form.arguments(),
                    hold=form.cleaned_data.get("hold", False),
                )  # fmt: skip
            except operations.OperationRefused as error:
                form.add_error(None, str(error))
            else:
                waits = made.state == OperationState.ASKED
                told = "waits for somebody else to approve it" if waits else "was started"
                self.message_user(request, f"Operation {made.pk} {told}.", messages.SUCCESS)
                return HttpResponseRedirect(reverse("admin:jobs_operation_change", args=[made.pk]))
        return self._page(request, "operation_new", context | {"preview": found, "form": form})

    def command_view(self, request: HttpRequest, object_id: int, verb: str) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if verb not in (*CONTROLS, "pace"):
            raise Http404
        back = reverse("admin:jobs_operation_change", args=[object_id])
        if verb not in HALTING and (asked := password.ask(self, request, back)):
            return asked
        try:
            done = _control(request, object_id, verb)
        except operator.Denied as error:
            return permission_denied(request, error)
        except operations.OperationRefused as error:
            self.message_user(request, f"Nothing was changed: {error}.", messages.ERROR)
            return HttpResponseRedirect(back)
        told = {"undo": "takes it back", "pace": f"does {done.rate:,} jobs a second at most"}
        text = f"Operation {done.pk} {told.get(verb, f'is {done.state}')}."
        self.message_user(request, text, messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:jobs_operation_change", args=[done.pk]))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if not self.has_view_permission(request) or request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        known = object_id.isascii() and object_id.isdigit() and len(object_id) < 19
        operation = (
            self.get_queryset(request).select_related("undoes").filter(pk=object_id).first()
            if known
            else None
        )
        if operation is None:
            raise Http404(f"There is no operation {object_id[:20]}.")
        request.current_app = self.admin_site.name
        part = live_part(request, "operation", lambda asked: _progress(operation, asked.user))
        if LIVE in request.GET:
            return fragment(request, part)
        return self._page(
            request,
            "operation_detail",
            {
                "title": f"Operation {operation.pk}",
                "operation": operation,
                "buttons": _buttons(operation, request.user),
                "rates": RATES if operation.state not in OVER else None,
                "again": _again(operation, request.user),
                "part": part,
                "live_url": live_url(request),
            },
        )

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:jobs_operation_change", args=[object_id]))

    def _page(self, request: HttpRequest, name: str, context: dict[str, Any]) -> TemplateResponse:
        context.setdefault("title", f"{str(context.get('verb')).capitalize()} all that fit")
        request.current_app = self.admin_site.name
        whole = {**self.admin_site.each_context(request), "opts": self.opts, "media": self.media, **context}
        return TemplateResponse(request, f"jobs/{name}.html", whole)

    @admin.display(description="operation")
    def number(self, operation: Operation) -> str:
        return f"{operation.pk} {operation.verb}"

    @admin.display(description="jobs")
    def what(self, operation: Operation) -> str:
        return show.visible(operation.query)

    @admin.display(description="state")
    def state_badge(self, operation: Operation) -> str:
        return show.badge(operation.state)

    @admin.display(description="changed of found")
    def progress(self, operation: Operation) -> str:
        expected = "?" if operation.expected is None else f"{operation.expected:,}"
        mark = "" if operation.expected_how == "exact" else "≈ "
        return f"{operation.changed + operation.requested:,} of {mark}{expected}"

    @admin.display(description="who")
    def who(self, operation: Operation) -> str:
        return show.visible(operation.author_name)

    @admin.display(description="when")
    def started(self, operation: Operation) -> str:
        return show.moment(operation.created_at)


def _preview(request: HttpRequest, verb: str, line: str) -> tuple[Preview | None, dict[str, Any]]:
    """What would be done, or what the page says instead."""
    try:
        with place(request):
            return operations.preview(request.user, verb, line), {}
    except SearchError as error:
        return None, {"problem": error, "pointer": error.pointer(line)}
    except TooSlow:
        return None, {"problem": "This search takes too long even for a preview: narrow it."}
    except NoPlace:
        told = "Other pages of yours are still being read. Nothing was started: try again."
        return None, {"problem": told}


def _progress(operation: Operation, user: Any) -> dict[str, Any]:
    """How far it is: what changes while the page is open."""
    return {
        "operation": operation,
        "share": _share(operation),
        "left": _left(operation),
        "may_approve": _may_approve(operation, user),
        "changed_url": _changed(operation),
        "skipped": sorted(operation.skipped.items(), key=lambda item: -item[1]),
        "pieces": list(operation.pieces.defer("ids", "befores").order_by("-number")[:PIECES]),
        "silent": _is_silent(operation),
        "is_over": operation.state in OVER,
    }


def _control(request: HttpRequest, pk: int, verb: str) -> Operation:
    user, reason = person(request), request.POST.get("reason", "")
    if verb != "pace":
        return CONTROLS[verb](user, pk, reason)
    rate = request.POST.get("rate", "").strip()
    if not (rate.isascii() and rate.isdigit() and len(rate) < 10):
        raise operations.OperationRefused("a rate is a whole number of jobs a second")
    return operations.pace(user, pk, int(rate), reason)


def _again(operation: Operation, user: Any) -> str:
    """The preview of the same for the same search; empty where this user cannot have it."""
    verb, query = operation.verb, operation.query
    if verb not in EFFECTS or len(query) > MAX_LENGTH or verb not in operation_verbs(user):
        return ""
    return f"{reverse('admin:jobs_operation_new', args=[verb])}?{urlencode({'q': query})}"


def operation_verbs(user: Any) -> list[str]:
    """What this user may do to all that a search finds."""
    if not user.has_perm(BULK):
        return []
    return [verb for verb in EFFECTS if user.has_perm(operator.COMMANDS[verb].permission)]


def _buttons(operation: Operation, user: Any) -> list[str]:
    """What can be done to it now."""
    found = []
    if operation.state == OperationState.ASKED:
        found = ["approve"] if _may_approve(operation, user) else []
        found.append("stop")
    elif operation.state in OPEN:
        found = ["pause", "stop"]
    elif operation.state == OperationState.PAUSED:
        found = ["resume", "stop"]
    ended = operation.state in OVER or operation.state == OperationState.PAUSED
    if ended and operation.changed + operation.requested and not operation.undoes_id:
        found.append("undo")
    return found


def _share(operation: Operation) -> int | None:
    """Percent done, as far as that is known."""
    if operation.state == OperationState.DONE:
        return 100
    return min(99, 100 * operation.looked // operation.expected) if operation.expected else None


def _may_approve(operation: Operation, user: Any) -> bool:
    return bool(user.has_perm(APPROVE) and user.pk != operation.author_id)


def _left(operation: Operation) -> timedelta | None:
    """How long it goes on at its pace, where that is known and worth telling."""
    if operation.state not in OPEN or operation.expected is None:
        return None
    left = timedelta(seconds=(operation.expected - operation.looked) / operation.rate)
    return left if left > SOON else None


def _changed(operation: Operation) -> str:
    """The search that finds its jobs, those that are where it put them; empty: there is none, or none so short."""
    kept = [str(term) for term in parse(operation.query, len(operation.query)) if term.name in ("due", "id")]
    line = " ".join([f"action:{operation.action_id}", *kept])
    if not operation.changed or operation.verb not in FOUND or len(line) > MAX_LENGTH:
        return ""
    return f"{reverse('admin:jobs_job_changelist')}?{urlencode({'q': line})}"


def _is_silent(operation: Operation) -> bool:
    """Nobody has worked on it for a minute although it is to be worked on."""
    since = max(filter(None, [operation.heartbeat_at, operation.next_at, operation.created_at]))
    return operation.state in OPEN and (timezone.now() - since).total_seconds() > 60
