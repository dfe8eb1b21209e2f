"""Whose tenants a user sees: one row for each."""

from __future__ import annotations

from django.http import HttpRequest

from jobs.console.audited import Audited
from jobs.models import TenantMember


class TenantMemberAdmin(Audited):
    list_display = ("user", "tenant")
    list_select_related = ("user", "tenant")
    search_fields = ("tenant__slug", "user__username")
    autocomplete_fields = ("tenant", "user")
    empty = "No user is bound to a tenant. Who has no row here, and not the permission to see every tenant, sees none."
    fieldsets = (
        (
            None,
            {
                "fields": ("user", "tenant"),
                "description": "The user sees this tenant. Who has the permission to see every tenant needs no row here; "
                "who has neither sees none.",
            },
        ),
    )

    def has_change_permission(self, request: HttpRequest, obj: TenantMember | None = None) -> bool:
        """A row is added and deleted, never turned into another."""
        return False
