"""What all pages share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.text import capfirst

from jobs.console.page import in_zone

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

    def get_urls(self) -> list[URLPattern]:
        """All of them show times in the operator's zone."""
        patterns: list[URLPattern] = super().get_urls()
        for pattern in patterns:
            pattern.callback = in_zone(pattern.callback)
        return patterns

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        title = capfirst(str(self.opts.verbose_name_plural))
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

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
