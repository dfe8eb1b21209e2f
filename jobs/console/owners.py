"""Tenants and queues: their share and their limits."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db import router
from django.db.models import QuerySet
from django.forms import ModelForm, model_to_dict
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from jobs import tenants
from jobs.console import show
from jobs.console.audited import Audited
from jobs.errors import TenantInUse
from jobs.models import Queue, Tenant


class Limited(Audited):
    """Its name is what jobs refer to, so it never changes."""

    name_field = "name"

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return (self.name_field,) if obj else ()

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        super().save_model(request, obj, form, change)
        if obj.max_running == 0:
            self.message_user(
                request,
                f"{self.opts.verbose_name} {obj}: max running is 0, so none of its jobs starts until that is changed.",
                messages.WARNING,
            )

    @admin.display(description="max running")
    def limit(self, row: Queue | Tenant) -> Any:
        if row.max_running == 0:
            return show.badge("0: nothing runs")
        return "unlimited" if row.max_running is None else row.max_running


class TenantAdmin(Limited):
    name_field = "slug"
    list_display = ("slug", "weight", "limit", "created")
    search_fields = ("slug",)
    fieldsets = (
        (
            None,
            {
                "fields": ("slug", "weight", "max_running"),
                "description": "A tenant can be deleted when it has no jobs of any kept day. To stop its jobs, pause it or "
                "set max running to 0.",
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tenant]:
        return super().get_queryset(request).filter(retired_at=None)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        tenant = self.get_object(request, object_id)
        try:
            if tenant is not None and self.has_delete_permission(request, tenant):
                tenants.require_unused(tenant.slug, tenant.pk, router.db_for_write(self.model))
            return super().delete_view(request, object_id, extra_context)
        except TenantInUse as error:
            self.message_user(request, str(error), messages.ERROR)
        return HttpResponseRedirect(reverse("admin:jobs_tenant_change", args=[object_id]))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        before = model_to_dict(obj)
        tenants.delete(obj.slug, router.db_for_write(self.model))
        self._record(request, "delete", obj, before, {})

    @admin.display(description="created")
    def created(self, tenant: Tenant) -> str:
        return show.moment(tenant.created_at)


class QueueAdmin(Limited):
    list_display = ("name", "limit")
    search_fields = ("name",)
    fieldsets = (
        (
            None,
            {
                "fields": ("name", "max_running"),
                "description": "A queue exists by being named. A row here gives it a limit; without one it has none.",
            },
        ),
    )
