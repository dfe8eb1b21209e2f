"""The audit: what operators did and tried. Only read here; written by `jobs.operator`."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join
from django.views.decorators.http import require_POST

from jobs import scope
from jobs.console import exporting, show, undo
from jobs.console.base import ReadOnly
from jobs.console.page import in_zone
from jobs.models import ActionResult, OperatorAction

VERBS = (
    "retry", "cancel", "reschedule", "prioritize", "move", "reveal", "retry all", "cancel all", "reschedule all",
    "prioritize all", "move all", "undo all", "pause operation", "resume operation", "stop operation", "undo operation",
    "approve operation", "pace operation", "add", "change", "delete", "pause", "resume", "limit", "undo limit", "run", "backfill", "rezone", "triage",
    "deploy", "export", "bundle", "confirm password",
)  # fmt: skip


class VerbFilter(admin.SimpleListFilter):
    """Known words, not those found in the table."""

    title = "verb"
    parameter_name = "verb"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(verb, verb) for verb in VERBS]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(verb=self.value()) if self.value() else queryset


class ResultFilter(admin.SimpleListFilter):
    title = "result"
    parameter_name = "result"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(result.value, result.value) for result in ActionResult]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(result=self.value()) if self.value() else queryset


class Audit(ChangeList):
    """The newest first, by their numbers; never counted, and paged by the last one seen."""

    older: str | None = None
    is_later = False

    def get_filters_params(self, params: Any = None) -> Any:
        found = super().get_filters_params(params)
        found.pop("before", None)
        return found

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> Any:
        found = super().get_queryset(request, exclude_parameters)
        text = request.GET.get("before", "")
        if text.isascii() and text.isdigit() and len(text) < 19:
            self.is_later = True
            found = found.filter(pk__lt=int(text))
        return found.order_by("-pk")

    def get_results(self, request: HttpRequest) -> None:
        rows = list(self.queryset[: self.list_per_page + 1])
        more, rows = len(rows) > self.list_per_page, rows[: self.list_per_page]
        if more:
            self.older = self.get_query_string({"before": rows[-1].pk})
        self.result_list, self.result_count = rows, len(rows)
        self.full_result_count = self.paginator = None
        self.can_show_all = self.multi_page = False
        self.show_full_result_count, self.show_admin_actions = False, False


class OperatorActionAdmin(ReadOnly):
    mixes_tenants = False
    list_display = ("when", "verb", "told", "who", "whence", "found", "done", "left_alone", "why")
    list_display_links = ("when", "verb")
    list_filter = (VerbFilter, ResultFilter)
    search_fields = ("actor_name",)
    search_help_text = "The name of who did it"
    empty = "Nothing yet. Commands, edits and operations are recorded here, with who did it and why; denied ones too."
    fields = (
        "when", "verb", "told", "who", "whence", "why", "found", "done", "requested", "left_alone", "what",
        "change",
    )  # fmt: skip
    actions = None

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        export = view(require_POST(partial(exporting.audit, self)))
        return [
            path("export/", export, name="jobs_operatoraction_export"),
            path("<int:object_id>/undo/", view(in_zone(self.undo_view)), name="jobs_operatoraction_undo"),
            *super().get_urls(),
        ]

    def undo_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        return undo.view(self, request, object_id)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        url = undo.url_for(request.user, object_id)
        return super().change_view(request, object_id, form_url, {"undo_url": url, **(extra_context or {})})

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().changelist_view(request, {"title": "Audit", **(extra_context or {})})

    def get_queryset(self, request: HttpRequest) -> QuerySet[OperatorAction]:
        """Who sees some tenants alone sees what was done to these alone."""
        found: QuerySet[OperatorAction] = super().get_queryset(request)
        seen = scope.scope_of(request.user)
        return found if seen is None else found.filter(tenant_id__in=seen)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return Audit

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """The whole name, so that the index serves it."""
        term = search_term.strip().replace("\0", "")
        return (queryset.filter(actor_name=term) if term else queryset), False

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        return lookup in (VerbFilter.parameter_name, ResultFilter.parameter_name)

    @admin.display(description="when")
    def when(self, action: OperatorAction) -> str:
        return show.moment(action.at)

    @admin.display(description="result")
    def told(self, action: OperatorAction) -> str:
        return show.badge(action.result)

    @admin.display(description="who")
    def who(self, action: OperatorAction) -> str:
        return show.visible(action.actor_name)

    @admin.display(description="through")
    def whence(self, action: OperatorAction) -> str:
        return show.visible(f"{action.via} {action.address or ''}".strip()) or show.NOTHING

    @admin.display(description="reason")
    def why(self, action: OperatorAction) -> str:
        return show.clean(action.reason or show.NOTHING)

    @admin.display(description="matched")
    def found(self, action: OperatorAction) -> str:
        return f"{action.matched:,}"

    @admin.display(description="changed")
    def done(self, action: OperatorAction) -> str:
        return f"{action.changed:,}"

    @admin.display(description="left alone")
    def left_alone(self, action: OperatorAction) -> str:
        if "denied" in action.skipped:
            return show.badge("denied")
        reasons = ", ".join(
            f"{count} {show.visible(reason)}" for reason, count in sorted(action.skipped.items())
        )
        return reasons or show.NOTHING

    @admin.display(description="target")
    def what(self, action: OperatorAction) -> str:
        """The jobs, the operation and the action undone as links; whatever else there is by its name."""
        linked = ("jobs", "operation", "action")
        rest = {name: value for name, value in action.target.items() if name not in linked}
        links = [
            (show.link("job", show.visible(job), show.visible(job)),) for job in action.target.get("jobs", [])
        ]
        if operation := action.operation_id:
            links.append((show.link("operation", operation, f"operation {operation}"),))
        if undone := action.target.get("action"):
            links.append((show.link("operatoraction", undone, f"action {show.visible(undone)}"),))
        facts = [(show.clean(name).replace("_", " "), _text(value)) for name, value in rest.items()]
        return format_html(
            '<ul class="plain">{}{}</ul>',
            format_html_join("", "<li>{}</li>", links),
            format_html_join("", '<li><span class="quiet">{}</span> {}</li>', facts),
        )

    @admin.display(description="before and after")
    def change(self, action: OperatorAction) -> str:
        if not (rows := show.changes(action.before, action.after)):
            return show.NOTHING
        return format_html('<ul class="plain">{}</ul>', format_html_join("", "<li>{}: {} → {}</li>", rows))


def _text(value: Any) -> str:
    return show.clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
