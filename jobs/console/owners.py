"""Tenants and queues: their share and their limits."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db import router
from django.forms import ModelForm, model_to_dict
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from jobs import clock, limiting, operator, tenants
from jobs.console import password, show, undo
from jobs.console import tenants as faring
from jobs.console.amounts import lasting
from jobs.console.audited import Audited
from jobs.console.origin import person
from jobs.console.page import LIVE, fragment, live_part, live_url
from jobs.console.pages import QUEUE, QUEUES
from jobs.console.seen import SeenForm
from jobs.errors import SchedulerError, TenantInUse
from jobs.models import Queue, Tenant
from jobs.scope import scope_of


class Limited(Audited):
    """Its name is what jobs refer to, so it never changes."""

    name_field = "name"
    deleted: ClassVar[str] = ""
    """What it means to delete one."""
    form = SeenForm

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return (self.name_field,) if obj else ()

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        if asked := password.ask(self, request):
            return asked
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except SchedulerError as error:  # what the form could not know, as a tenant that is deleted meanwhile
            self.message_user(request, f"Nothing was changed: {error}", messages.ERROR)
            return HttpResponseRedirect(request.path)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        context = {"meaning": self.deleted, **(extra_context or {})}
        return password.ask(self, request) or super().delete_view(request, object_id, context)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        if not change:
            super().save_model(request, obj, form, change)
            if warning := limiting.warning_of(obj):
                self.message_user(request, warning, messages.WARNING)
        elif changes := {name: form.cleaned_data[name] for name in form.changed_data}:
            names = {str(self.opts.model_name): getattr(obj, self.name_field)}
            row, action = operator.limit(
                person(request), changes, **names, using=router.db_for_write(self.model)
            )
            undo.offer(self, request, row, action)

    @admin.display(description="max running")
    def limit(self, row: Queue | Tenant) -> Any:
        temporary = getattr(row, "temporary_until", None)
        if temporary is not None and temporary > clock.now():
            most = "unlimited" if row.temporary_max_running is None else row.temporary_max_running  # type: ignore[union-attr]
            return format_html("{}, until {}", most, show.moment(temporary))
        if row.max_running == 0:
            return show.badge("0: nothing runs")
        return "unlimited" if row.max_running is None else row.max_running


class TenantAdmin(Limited):
    mixes_tenants = False
    name_field = "slug"
    list_display = ("name", "condition", "running", "waiting", "oldest", "limit", "weight", "late", "failed")
    search_fields = ("slug",)
    search_help_text = "Part of a tenant's name"
    deleted = "It has no jobs of any kept day. Its limits go with it; whoever names it again makes it anew."
    empty = "No tenant yet. One appears with its first job; added here, it has its limits before that."
    fieldsets = (
        (
            None,
            {
                "fields": ("slug", ("weight", "max_running")),
                "description": "A tenant can be deleted when it has no jobs of any kept day. To stop its jobs, hold it or "
                "set max running to 0.",
            },
        ),
        (
            "For a while",
            {
                "fields": (("temporary_max_running", "temporary_until"),),
                "description": "Instead of max running, until a time; then max running holds again by itself.",
            },
        ),
        ("Rate", {"fields": (("rate", "rate_per", "burst"),)}),
        ("While others wait", {"fields": ("noisy_exempt",)}),
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        found = super().get_queryset(request).filter(retired_at=None)
        seen = scope_of(request.user)
        return found if seen is None else found.filter(pk__in=seen)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return scope_of(request.user) is None and super().has_add_permission(request)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Read once a request: our part of the page and Django's ask for the same."""
        known: dict[str, Any] = request.__dict__.setdefault("_tenants", {})
        if request.method != "GET" or object_id not in known:
            known[object_id] = super().get_object(request, object_id, from_field)
        return known[object_id]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return faring.TenantList

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """How it fares, above the form of its limits."""
        tenant = self.get_object(request, object_id)
        if tenant is None or not self.has_view_permission(request, tenant):
            return super().change_view(request, object_id, form_url, extra_context)
        part = live_part(request, "tenant", lambda asked: faring.gather(asked, tenant))
        if LIVE in request.GET:
            return fragment(request, part)
        context = {
            "part": part,
            "live_url": live_url(request),
            "title": f"Tenant {show.visible(tenant.slug)}",
            "subtitle": None,
            **(extra_context or {}),
        }
        return super().change_view(request, object_id, form_url, context)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        tenant = self.get_object(request, object_id)
        try:
            if tenant is not None and self.has_delete_permission(request, tenant):
                tenants.require_unused(tenant.slug, tenant.pk, router.db_for_write(self.model))
            return super().delete_view(request, object_id, extra_context)
        except TenantInUse as error:
            self.message_user(request, str(error), messages.ERROR)
        return HttpResponseRedirect(reverse("admin:jobs_tenant_change", args=[object_id]))

    @admin.display(description="tenant")
    def name(self, tenant: Any) -> str:
        return show.visible(tenant.slug)

    @admin.display(description="state")
    def condition(self, tenant: Any) -> str:
        return show.badge(tenant.fare.condition)

    @admin.display(description="running")
    def running(self, tenant: Any) -> str:
        return f"{tenant.fare.standing.running:,}"

    @admin.display(description="waiting")
    def waiting(self, tenant: Any) -> str:
        return f"{tenant.fare.standing.waiting:,}"

    @admin.display(description="oldest")
    def oldest(self, tenant: Any) -> str:
        return lasting(tenant.fare.wait)

    @admin.display(description="lateness, 95 %")
    def late(self, tenant: Any) -> str:
        return lasting(tenant.fare.past.late_95)

    @admin.display(description="failed, last hour")
    def failed(self, tenant: Any) -> str:
        return f"{tenant.fare.past.failed:,}"

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        before = model_to_dict(obj)
        tenants.delete(obj.slug, router.db_for_write(self.model))
        self._record(request, "delete", obj, before, {})


class QueueAdmin(Limited):
    """Its list is of all queues that are known, not of those that have a row."""

    deleted = (
        "Its limits go and nothing else: a queue exists by being named, and its jobs run on without a limit."
    )
    list_display = ("name", "limit")
    search_fields = ("name",)
    fieldsets = (
        (
            None,
            {
                "fields": ("name", ("max_running", "noisy_share"), ("rate", "rate_per", "burst")),
                "description": "A queue exists by being named. A row here gives it a limit; without one it has none.",
            },
        ),
    )

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [path("one/", view(QUEUE.view(self)), name="jobs_queue_one"), *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return QUEUES.view(self)(request)
