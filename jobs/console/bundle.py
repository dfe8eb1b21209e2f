"""The support bundle: what somebody who helps has to know of an installation, as one JSON file. What is in it is named
here: no payload, no name of a tenant, queue, type, host or user. What could be a secret is taken out of every text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, fields
from datetime import date, datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.defaults import permission_denied

from jobs import checks, clock, operator
from jobs.conf import conf
from jobs.console import fleet, health
from jobs.console.hidden import hider
from jobs.console.origin import person
from jobs.console.places import NoPlace, place
from jobs.console.plans import plans
from jobs.console.reading import rows
from jobs.scope import scope_of
from jobs.search.guard import TooSlow, bounded
from jobs.sql import load

PERMISSION = "jobs.view_health"
MOST = 256 * 1024
"""Bytes of a bundle."""
ITEMS = (400, 100, 20)
"""Of each list so many are kept, or fewer when they are too much."""
TEXT = 300
_SERVER = (
    "version", "size", "age", "freeze", "connections", "max_connections", "replica", "read_only", "fsync",
    "synchronous_commit", "autovacuum", "entries", "entries_dead", "now",
)  # fmt: skip
_TABLE = ("name", "live", "dead", "scans", "index_scans", "vacuumed", "analyzed", "bytes")


def view(admin: Any, request: HttpRequest) -> HttpResponse:
    """POST: the download. Recorded."""
    if not admin.has_view_permission(request) or scope_of(request.user) is not None:
        raise PermissionDenied
    user = person(request)
    try:
        operator.require(user, PERMISSION, "bundle", {"bundle": "support"})
    except operator.Denied as error:  # returned, not raised, so that a request's transaction keeps the record
        return permission_denied(request, error)
    try:
        with place(request), bounded("default"):
            text = bundle(request)
    except (TooSlow, NoPlace):
        admin.message_user(request, "Nothing was made: the database is too slow. Try again.", messages.ERROR)
        return HttpResponseRedirect(reverse("admin:jobs_job_health"))
    operator.record(user, "bundle", {"bundle": "support", "bytes": len(text)}, matched=0)
    name = f"support-{clock.now():%Y%m%dT%H%M%SZ}.json"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(text, content_type="application/json; charset=utf-8", headers=headers)


def bundle(request: HttpRequest) -> bytes:
    """At most MOST bytes."""
    told, hide = _told(request), hider()
    for items in ITEMS:
        text = json.dumps(_plain(told, hide, items), ensure_ascii=False, indent=1).encode()
        if len(text) <= MOST:
            break
    return text


def _told(request: HttpRequest) -> dict[str, Any]:
    found = health.gather(request)
    server, planned = found["server"], found["plan"]
    return {
        "made_at": clock.now(),
        "versions": dict(found["versions"]),
        "settings": {each.name: _setting(getattr(conf(), each.name)) for each in fields(conf())},
        "set_here": [name for name, _, is_set in found["settings"] if is_set],
        "django": _django(),
        "checks": [asdict(check) for check in found["checks"]],
        "system_checks": [{"id": each.id, "told": str(each.msg)} for each in _system_checks()],
        "server": {name: server.get(name) for name in _SERVER},
        "long_transactions": [
            {"state": each["state"], "seconds": each["seconds"]} for each in server.get("long", ())
        ],
        "plan": planned and {"ready": planned.ready, **Counter(step.action for step in planned.steps)},
        "days": [
            {
                "day": line.day, "when": line.when, "rows": line.rows, "jobs": line.jobs, "bytes": line.bytes,
                "plan": line.step and line.step.action, "why": line.step and line.step.reason,
            }
            for line in sorted(found["lines"], key=lambda line: line.when != "today")
        ],
        "tables": _tables(),
        "processes": Counter(
            f"{line.kind} {line.state}"
            for kinds in (fleet.WORKING, fleet.DISPATCHING)
            for line in fleet.process_lines(kinds)
        ),
        "plans": plans(),
    }  # fmt: skip


def _setting(value: Any) -> Any:
    """Lists name commands and hosts: their length says enough."""
    return f"{len(value)} entries" if isinstance(value, tuple) else value


def _django() -> dict[str, Any]:
    return {
        "DEBUG": settings.DEBUG,
        "USE_TZ": settings.USE_TZ,
        "TIME_ZONE": settings.TIME_ZONE,
        "databases": [
            {
                "engine": each.get("ENGINE"),
                "conn_max_age": each.get("CONN_MAX_AGE"),
                "atomic_requests": each.get("ATOMIC_REQUESTS"),
                "server_side_cursors": not each.get("DISABLE_SERVER_SIDE_CURSORS"),
                "options": sorted(each.get("OPTIONS", {})),
            }
            for each in settings.DATABASES.values()
        ],
    }


def _system_checks() -> list[Any]:
    """Ours: those of other apps may tell anything."""
    each = (checks.check_settings, checks.check_handlers, checks.check_database)
    return [message for check in each for message in check(None, databases=["default"])]


def _tables(using: str = "default") -> list[dict[str, Any]]:
    found = rows(load("console/tables"), None, using)
    return [dict(zip(_TABLE, row, strict=True)) for row in found]


def _plain(value: Any, hide: Callable[[str], str], items: int) -> Any:
    """As JSON, without secrets, and only then cut."""
    if isinstance(value, dict):
        return {name: _plain(each, hide, items) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, hide, items) for each in value[:items]]
    if isinstance(value, timedelta):
        return value.total_seconds()
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value.isoformat() if isinstance(value, date | datetime) else str(value)
    return hide(text)[:TEXT]
