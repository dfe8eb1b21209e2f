"""What all pages share."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern
from django.utils.text import capfirst

from jobs.console.page import in_zone
from jobs.console.widgets import Choice, SplitMoment
from jobs.models import Tenant
from jobs.scope import scope_of

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


class Page(ModelAdmin):
    """Nothing is counted behind the operator's back, and nothing is sorted by a click."""

    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by: ClassVar[Any] = ()
    list_per_page = 50
    list_max_show_all = 0
    formfield_overrides: ClassVar[Any] = {models.DateTimeField: {"widget": SplitMoment}}
    empty: ClassVar[str] = ""
    """What its list says while there is nothing in it."""
    mixes_tenants = True
    """Its rows are not a tenant's: only who sees every tenant sees them. A page that keeps tenants apart says False."""

    def get_urls(self) -> list[URLPattern]:
        """All of them show times in the operator's zone."""
        patterns: list[URLPattern] = super().get_urls()
        for pattern in patterns:
            pattern.callback = in_zone(pattern.callback)
        return patterns

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if any("\0" in value for name, values in request.GET.lists() if name != "q" for value in values):
            return HttpResponseRedirect(request.path)  # no column holds it, and Django would fail with it
        title = capfirst(str(self.opts.verbose_name_plural))
        return super().changelist_view(
            request, {"title": title, "empty": self.empty, **(extra_context or {})}
        )

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """What a link fills in; what is no value of its field is left out."""
        asked: dict[str, Any] = super().get_changeform_initial_data(request)
        found = dict[str, Any]()
        for name, value in asked.items():
            # A relation has no values; a date or duration may lie beyond the calendar.
            with suppress(FieldDoesNotExist, ValidationError, AttributeError, OverflowError):
                field: Any = self.opts.get_field(name)
                plain = field.to_python(value)
                if "\0" not in value:
                    found[name] = plain if isinstance(field, models.DateTimeField) else value
        return found

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self._is_open(request) and super().has_module_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._is_open(request) and super().has_view_permission(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self._is_open(request) and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._is_open(request) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._is_open(request) and super().has_delete_permission(request, obj)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """No tenant can be chosen that is not seen."""
        seen = scope_of(request.user)
        if db_field.related_model is Tenant and seen is not None:
            kwargs["queryset"] = Tenant.objects.filter(pk__in=seen)
        if db_field.name in self.autocomplete_fields:
            kwargs["widget"] = Choice(db_field, self.admin_site)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def _is_open(self, request: HttpRequest) -> bool:
        return not self.mixes_tenants or scope_of(request.user) is None

    class Media:
        css = {"all": ["jobs/console.css"]}


class ReadOnly(Page):
    """Rows that only the scheduler writes."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
