"""The sections of the console, as its navigation shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from jobs.scope import scope_of
from jobs.search.terms import quoted


@dataclass(frozen=True)
class Section:
    name: str
    label: str
    address: str
    """Within the admin's namespace."""
    permission: str
    key: str
    """`g` and this letter lead there."""
    mixes_tenants: bool = False
    """Only for who sees every tenant."""


SECTIONS = (
    Section("overview", "Overview", "app_list", "view_job", "o"),
    Section("jobs", "Jobs", "jobs_job_changelist", "view_job", "j"),
    Section("errors", "Errors", "jobs_job_errors", "view_job", "e", True),
    Section("forecast", "Forecast", "jobs_job_forecast", "view_job", "f"),
    Section("queues", "Queues", "jobs_queue_changelist", "view_queue", "q", True),
    Section("types", "Types", "jobs_job_types", "view_job", "y", True),
    Section("tenants", "Tenants", "jobs_tenant_changelist", "view_tenant", "t"),
    Section("cron", "Cron", "jobs_crondefinition_changelist", "view_crondefinition", "c"),
    Section("workers", "Workers", "jobs_process_workers", "view_process", "w", True),
    Section("dispatchers", "Dispatchers", "jobs_process_dispatchers", "view_process", "d", True),
    Section("operations", "Operations", "jobs_operation_changelist", "view_operation", "p"),
    Section("holds", "Holds", "jobs_hold_changelist", "view_hold", "h", True),
    Section("audit", "Audit", "jobs_operatoraction_changelist", "view_operatoraction", "a"),
    Section("health", "Health", "jobs_job_health", "view_job", "s", True),
)
_OF_MODEL = {
    "job": "jobs",
    "queue": "queues",
    "tenant": "tenants",
    "crondefinition": "cron",
    "process": "workers",
    "operation": "operations",
    "hold": "holds",
    "operatoraction": "audit",
}


def address(name: str, site: str = "admin", **kwargs: Any) -> str:
    """Of a page of the admin, or "" where this project has none of this name."""
    if name == "app_list":
        kwargs = {"app_label": "jobs"}
    try:
        return reverse(f"{site}:{name}", kwargs=kwargs or None)
    except NoReverseMatch:
        return ""


def links(request: HttpRequest) -> list[dict[str, str]]:
    """The sections that this user may see."""
    site = getattr(request, "current_app", None) or "admin"
    everything = scope_of(request.user) is None
    return [
        {"name": each.name, "label": each.label, "url": url, "key": each.key}
        for each in SECTIONS
        if (everything or not each.mixes_tenants)
        and request.user.has_perm(f"jobs.{each.permission}")
        and (url := address(each.address, site))
    ]


def of_model(model_name: str) -> str:
    return _OF_MODEL.get(model_name, "")


def search(site: str = "admin", **terms: Any) -> str:
    """The list of jobs, searched by these terms: `search(queue="mail", state="failed")`."""
    text = " ".join(
        f"{name}:{quoted(str(value))}" for name, value in terms.items() if value not in (None, "")
    )
    return f"{address('jobs_job_changelist', site)}?{urlencode({'q': text})}"


def named(name: str, value: Any, site: str = "admin") -> str:
    """A page that takes what it shows by `name`, which may hold any character."""
    return f"{address(name, site)}?{urlencode({'name': value})}"


def hold_url(scope: str, key: str, site: str = "admin") -> str:
    """The form that holds this, filled in."""
    return f"{address('jobs_hold_add', site)}?{urlencode({'scope': scope, 'key': key})}"
