"""Cron definitions: written and edited here or declared in code; each shows when it fires next, in its own time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.dateparse import parse_duration
from django.utils.html import format_html, format_html_join
from django.views.decorators.http import require_POST

from jobs.console import cron_commands, redact, show
from jobs.console.audited import Audited
from jobs.console.cron_form import CronForm
from jobs.cron import Recurrence, recurrence, zone
from jobs.declared import overridden
from jobs.errors import CronError
from jobs.models import CronDefinition, CronTick

FIRES = 5
TICKS = 20
MOMENT = timedelta(microseconds=1)
LEDGER = timedelta(days=2)
"""So far back, and ahead, the page looks into the ledger."""
_JOB = ("job_type", "payload", "queue", "priority", "max_attempts")
_RULE = (
    "expression",
    "timezone",
    "dst",
    "every",
    "anchor_at",
    "run_at",
    "start_at",
    "end_at",
    "max_runs",
    "jitter",
    "spread",
)
_STATE = (
    "in_words",
    "next_fires",
    "next_slot",
    "last_slot",
    "runs",
    "revision",
    "broken",
    "source",
    "created_at",
    "ledger",
)
_LATE = ("misfire", "misfire_grace", "catchup_window", "catchup_limit", "overlap")


class Fire(NamedTuple):
    local: str
    utc: str


class CronDefinitionAdmin(Audited):
    form = CronForm
    list_display = ("name", "when", "timezone", "job_type", "tenant", "status", "next_at", "last_at")
    list_select_related = ("tenant",)
    list_filter = ("enabled",)
    search_fields = ("name", "job_type")
    search_help_text = "Part of a name or a type"
    autocomplete_fields = ("tenant",)
    readonly_fields = (*_STATE, "payload_shape")
    fieldsets = (
        (None, {"fields": ("name", "tenant", "enabled", "note")}),
        ("Rule", {"fields": _RULE}),
        ("Job", {"fields": _JOB}),
        ("When a slot is late", {"fields": _LATE, "classes": ("collapse",)}),
        ("State", {"fields": _STATE}),
    )

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Who may not edit sees the shape of the payload, like everywhere; a new definition has no state."""
        sets: Any = super().get_fieldsets(request, obj)
        if obj is None:
            return sets[:-1]
        if not self.has_change_permission(request, obj):
            fields = tuple("payload_shape" if name == "payload" else name for name in _JOB)
            return [
                (title, options | {"fields": fields} if title == "Job" else options)
                for title, options in sets
            ]
        return sets

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        preview, command = wrap(require_POST(self.preview_view)), wrap(require_POST(self.command_view))
        return [
            path("preview/", preview, name="jobs_crondefinition_preview"),
            path("<path:object_id>/command/<str:verb>/", command, name="jobs_crondefinition_command"),
            *super().get_urls(),
        ]

    def command_view(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponse:
        return cron_commands.view(self, request, object_id, verb)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        definition = context.get("original")
        if definition is not None:
            context["overridden"] = ", ".join(overridden(definition))
        if definition is not None and self.has_change_permission(request, definition):
            context["cron_buttons"] = cron_commands.buttons(definition)
        return super().render_change_form(request, context, *args, **kwargs)

    def preview_view(self, request: HttpRequest) -> HttpResponse:
        """What the posted rule would do. Nothing is stored; POST, since the form around it is posted."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        names = {"expression": 1000, "timezone": 100, "dst": 20, "every": 40}
        asked = {name: request.POST.get(name, "").strip()[:limit] for name, limit in names.items()}
        context: dict[str, Any] = {"asked": asked, "fires": [], "warnings": [], "problem": ""}
        now = timezone.now()
        try:
            tz = zone(asked["timezone"]).key
            every = parse_duration(asked["every"]) if asked["every"] and not asked["expression"] else None
            rule = recurrence(
                expression=asked["expression"], tz=tz, dst=asked["dst"] or "cron", every=every, anchor=now
            )
            context |= {"fires": fires(rule, tz, now), "warnings": rule.warnings, "words": rule.description}
        except CronError as error:
            context["problem"] = str(error)
        context |= self.admin_site.each_context(request)
        context |= {"title": "When would it fire?", "opts": self.opts, "media": self.media}
        return TemplateResponse(request, "jobs/cron_preview.html", context)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        super().save_model(request, obj, form, change)
        for warning in obj.rule().warnings:
            self.message_user(request, f"{obj.name}: {warning}", messages.WARNING)

    @admin.display(description="in words")
    def in_words(self, definition: CronDefinition) -> str:
        try:
            return f"{definition.rule().description} ({show.visible(definition.timezone)})"
        except CronError as error:
            return show.visible(error)

    @admin.display(description=f"next {FIRES} fires")
    def next_fires(self, definition: CronDefinition) -> str:
        try:
            rule = definition.rule()
        except CronError as error:
            return show.visible(error)
        now = timezone.now()
        after = max(now, (definition.start_at or now) - MOMENT)  # a slot at the very start counts
        rows = [(fire.local, fire.utc) for fire in fires(rule, definition.timezone, after, definition.end_at)]
        if not rows:
            return "It never fires again."
        note = "" if definition.enabled else "It is disabled: none of these will fire."
        items = format_html_join("", '<li>{} <span class="quiet">{}</span></li>', rows)
        return format_html('{}<ol class="fires">{}</ol>', note, items)

    @admin.display(description="payload")
    def payload_shape(self, definition: CronDefinition) -> str:
        return format_html('<pre class="json">{}</pre>', redact.shape(definition.payload))

    @admin.display(description="latest slots")
    def ledger(self, definition: CronDefinition) -> str:
        """The last rows of the ledger: what became of each slot."""
        now = timezone.now()
        ticks = CronTick.objects.using(definition._state.db).filter(
            definition_id=definition.pk, slot__gt=now - LEDGER, slot__lte=now + LEDGER
        )
        rows = [
            (
                show.moment(tick.slot),
                f" and {tick.slots - 1} more" * (tick.slots > 1),
                show.badge(tick.outcome),
                tick.reason,
            )
            for tick in ticks.order_by("-slot")[:TICKS]
        ]
        items = format_html_join("", '<li>{}{} {} <span class="quiet">{}</span></li>', rows)
        return format_html('<ol class="fires">{}</ol>', items) if rows else show.NOTHING

    @admin.display(description="status")
    def status(self, definition: CronDefinition) -> str:
        if definition.broken:
            return show.badge("broken")
        if not definition.enabled:
            return format_html(
                '{} <span class="quiet">{}</span>', show.badge("paused"), show.clean(definition.note)
            )
        badge = show.badge("ended" if definition.look_at is None else "enabled")
        return (
            format_html('{} <span class="quiet">changed here</span>', badge)
            if overridden(definition)
            else badge
        )

    @admin.display(description="next slot")
    def next_at(self, definition: CronDefinition) -> str:
        return show.moment(definition.next_slot)

    @admin.display(description="last slot")
    def last_at(self, definition: CronDefinition) -> str:
        return show.moment(definition.last_slot)


def fires(rule: Recurrence, tz: str, after: datetime, end: datetime | None = None) -> list[Fire]:
    """The next fires later than `after`, on the wall clock of a zone with its offset, and in UTC."""
    found: list[Fire] = []
    moment = rule.next(after)
    while moment is not None and len(found) < FIRES and (end is None or moment <= end):
        local = moment.astimezone(zone(tz))
        found.append(Fire(f"{local:%a %Y-%m-%d %H:%M %z} {tz}", f"{moment:%Y-%m-%d %H:%M UTC}"))
        moment = rule.next(moment)
    return found
