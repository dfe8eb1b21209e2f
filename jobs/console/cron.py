"""Cron definitions: written and edited here or declared in code; each shows when it fires next, in its own time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.views.decorators.http import require_http_methods, require_POST

from jobs.console import cron_commands, cron_preview, redact, sections, show, ticks
from jobs.console.audited import Audited
from jobs.console.cron_form import CronForm
from jobs.console.cron_preview import fires
from jobs.console.page import LIVE, console_page, fragment, in_zone
from jobs.declared import overridden
from jobs.errors import CronError
from jobs.models import CronDefinition, CronTick
from jobs.scope import scope_of

TICKS = 20
MOMENT = timedelta(microseconds=1)
LEDGER = timedelta(days=2)
"""So far back, and ahead, the page looks into the ledger."""
_JOB = ("job_type", "payload", "queue", "priority", "max_attempts")
_RULE = ("expression", "timezone", "dst", "every")
_BOUNDS = ("anchor_at", "run_at", "start_at", "end_at", "max_runs", "jitter", "spread")
_STATE = (
    "in_words",
    "next_fires",
    "next_at",
    "last_at",
    "runs",
    "revision",
    "broken",
    "source",
    "made_at",
    "ledger",
)
_LATE = ("misfire", "misfire_grace", "catchup_window", "catchup_limit", "overlap")


class CronDefinitionAdmin(Audited):
    mixes_tenants = False
    form = CronForm
    list_display = ("name", "when", "timezone", "job_type", "tenant", "status", "next_at", "last_at")
    list_select_related = ("tenant",)
    list_filter = ("enabled",)
    search_fields = ("name", "job_type")
    search_help_text = "Part of a name or a type"
    empty = "No cron definition yet. Add one here, or declare it in code with @cron; a dispatcher fires it."
    autocomplete_fields = ("tenant",)
    readonly_fields = (*_STATE, "payload_shape")
    fieldsets = (
        (None, {"fields": ("name", "tenant", "enabled", "note")}),
        ("Rule", {"fields": _RULE}),
        ("State", {"fields": _STATE}),
        ("Job", {"fields": _JOB}),
        ("Beginning, end and delay", {"fields": _BOUNDS, "classes": ("collapse",)}),
        ("When a slot is late", {"fields": _LATE, "classes": ("collapse",)}),
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        found = super().get_queryset(request)
        seen = scope_of(request.user)
        return found if seen is None else found.filter(tenant_id__in=seen)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Who may not edit sees the shape of the payload, like everywhere; a new definition has no state."""
        sets: Any = super().get_fieldsets(request, obj)
        if obj is None:
            return [each for each in sets if each[0] != "State"]
        if not self.has_change_permission(request, obj):
            fields = tuple("payload_shape" if name == "payload" else name for name in _JOB)
            return [
                (title, options | {"fields": fields} if title == "Job" else options)
                for title, options in sets
            ]
        return sets

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """The tenant is chosen here, and neither edited nor deleted."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name == "tenant" and field is not None:
            widget: Any = field.widget
            widget.can_add_related = widget.can_change_related = widget.can_delete_related = False
        return field

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        preview = wrap(require_http_methods(["GET", "POST"])(in_zone(self.preview_view)))
        command = wrap(in_zone(require_POST(self.command_view)))
        return [
            path("preview/", preview, name="jobs_crondefinition_preview"),
            path("<path:object_id>/ticks/", wrap(in_zone(self.ticks_view)), name="jobs_crondefinition_ticks"),
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
        """What a rule would do. Nothing is stored: posted by the form around it, or asked for while it is typed."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        posted = request.POST if request.method == "POST" else request.GET
        context = cron_preview.preview(posted, timezone.now())
        if LIVE in request.GET:
            return fragment(request, render_to_string("jobs/_cron_preview.html", context, request))
        context |= self.admin_site.each_context(request)
        context |= {"title": "When would it fire?", "opts": self.opts, "media": self.media}
        return TemplateResponse(request, "jobs/cron_preview.html", context)

    def ticks_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The ledger: what became of every slot."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        definition = self.get_object(request, object_id)
        if definition is None:
            raise Http404
        title = f"Ticks of {show.visible(definition.name)}"
        change = sections.address("jobs_crondefinition_change", self.admin_site.name, object_id=definition.pk)

        def gather(request: HttpRequest) -> dict[str, Any]:
            found = ticks.page(definition, request.GET.get("before", ""))
            return found | {"definition": definition}

        return console_page(
            self,
            request,
            "ticks",
            title,
            gather,
            permission="jobs.view_crondefinition",
            section="cron",
            parent=(show.visible(definition.name), change),
            mixes_tenants=False,
        )

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

    @admin.display(description="next 5 fires")
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
        address = sections.address("jobs_crondefinition_ticks", object_id=definition.pk)
        everything = format_html('<a href="{}">All ticks</a>', address)
        return format_html('<ol class="fires">{}</ol>{}', items, everything) if rows else everything

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

    @admin.display(description="made")
    def made_at(self, definition: CronDefinition) -> str:
        return show.moment(definition.created_at)

    @admin.display(description="last slot")
    def last_at(self, definition: CronDefinition) -> str:
        return show.moment(definition.last_slot)
