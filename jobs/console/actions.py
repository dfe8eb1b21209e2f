"""The audit: what operators did. Only read here; written by `jobs.operator`."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join

from jobs.console import show
from jobs.console.base import ReadOnly
from jobs.models import OperatorAction

VERBS = (
    "retry", "cancel", "reveal", "add", "change", "delete", "pause", "resume", "run", "backfill", "rezone",
)  # fmt: skip


class VerbFilter(admin.SimpleListFilter):
    """Known words, not those found in the table."""

    title = "verb"
    parameter_name = "verb"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(verb, verb) for verb in VERBS]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(verb=self.value()) if self.value() else queryset


class OperatorActionAdmin(ReadOnly):
    list_display = ("when", "verb", "who", "matched", "changed", "left_alone", "why")
    list_display_links = ("when", "verb")
    list_filter = (VerbFilter,)
    search_fields = ("actor_name",)
    search_help_text = "Part of a name"
    fields = ("when", "verb", "who", "why", "matched", "changed", "left_alone", "what")

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        return lookup == VerbFilter.parameter_name

    @admin.display(description="when")
    def when(self, action: OperatorAction) -> str:
        return show.moment(action.at)

    @admin.display(description="who")
    def who(self, action: OperatorAction) -> str:
        return show.visible(action.actor_name)

    @admin.display(description="reason")
    def why(self, action: OperatorAction) -> str:
        return show.clean(action.reason or show.NOTHING)

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
        """The jobs as links; whatever else there is as JSON."""
        rest = {name: value for name, value in action.target.items() if name != "jobs"}
        links = format_html_join(
            "", "<li>{}</li>", ((_link(job_id),) for job_id in action.target.get("jobs", []))
        )
        text = show.clean(json.dumps(rest, indent=2, ensure_ascii=False))
        more = format_html('<pre class="json">{}</pre>', text) if rest else ""
        return format_html('<ul class="plain">{}</ul>{}', links, more)


def _link(job_id: Any) -> str:
    return show.link("job", show.visible(job_id), show.visible(job_id))
