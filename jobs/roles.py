"""Roles: groups with the permissions that their members need, made by `manage.py jobs_roles` and free to be edited.

Viewer looks; support helps with its own tenants; operator runs the system; lead may do everything; auditor reads what
others did.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import Group, Permission
from django.db import transaction

PREFIX = "Jobs: "
_LOOK = ("view_job", "every_tenant", "view_queue", "view_tenant", "view_crondefinition", "view_process", "view_hold",
         "view_operation", "view_tenantqueuelimit")  # fmt: skip
_ACT = ("retry_job", "cancel_job", "reschedule_job", "prioritize_job", "move_job")
_CRON = ("add_crondefinition", "change_crondefinition", "delete_crondefinition")
_HOLD = ("add_hold", "change_hold", "delete_hold")
_LIMIT = ("change_tenant", "change_queue", "add_queue", "delete_queue", "add_tenantqueuelimit",
          "change_tenantqueuelimit", "delete_tenantqueuelimit")  # fmt: skip

ROLES: dict[str, tuple[str, ...]] = {
    "viewer": _LOOK,
    "support": ("view_job", "view_tenant", "view_crondefinition", "view_operation", "retry_job", "cancel_job",
                "reschedule_job", "bulk_job"),
    "operator": (*_LOOK, *_ACT, *_CRON, *_HOLD, *_LIMIT, "bulk_job", "bulk_many", "share_view",
                 "export_job", "triage_error", "mark_deploy", "view_metrics", "view_health"),
    "lead": (*_LOOK, *_ACT, *_CRON, *_HOLD, *_LIMIT, "add_tenant", "bulk_job", "bulk_many", "bulk_any", "share_view",
             "export_job", "triage_error", "mark_deploy", "view_metrics", "view_health", "approve_operation", "reveal_payload", "view_operatoraction", "view_tenantmember", "add_tenantmember", "delete_tenantmember"),
    "auditor": (*_LOOK, "view_operatoraction", "export_job", "view_metrics", "view_health"),
}  # fmt: skip
"""Codenames of the app's permissions. Support sees the tenants that it is a member of, for want of every_tenant."""


def name_of(role: str) -> str:
    """Of the group."""
    return PREFIX + role


def make(using: str = "default") -> dict[str, list[str]]:
    """Make the groups that are missing, and give each what its role has and it has not: what was added by hand stays.
    Returns what was given to each."""
    given: dict[str, list[str]] = {}
    with transaction.atomic(using):
        known = _known(using)
        for role, codenames in ROLES.items():
            group, _ = Group.objects.using(using).get_or_create(name=name_of(role))
            has = set(group.permissions.using(using).values_list("codename", flat=True))
            missing = [name for name in codenames if name in known and name not in has]
            group.permissions.add(*(known[name] for name in missing))
            given[role] = missing
    return given


def unknown(using: str = "default") -> list[str]:
    """Permissions of roles that do not exist: the app is not migrated, or a role names one that is gone."""
    known = _known(using)
    return sorted({name for names in ROLES.values() for name in names if name not in known})


def _known(using: str) -> dict[str, Permission]:
    found: Iterable[Permission] = Permission.objects.using(using).filter(content_type__app_label="jobs")
    return {permission.codename: permission for permission in found}
