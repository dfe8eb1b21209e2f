"""A page that is no list of rows: permission, zone, patience, and the part of it that refreshes itself."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.cache import get_conditional_response

from jobs.console.places import NoPlace, answered, place
from jobs.console.preferences import preferences
from jobs.scope import scope_of
from jobs.search.guard import PATIENCE, TooSlow, bounded

LIVE = "_live"
"""An address with this asks for the refreshing part alone."""
Gather = Callable[[HttpRequest], dict[str, Any]]
View = Callable[..., HttpResponse]


def console_page(
    admin: Any,
    request: HttpRequest,
    name: str,
    title: str,
    gather: Gather,
    *,
    permission: str = "jobs.view_job",
    section: str = "",
    template: str = "jobs/page.html",
    using: str = "default",
    parent: tuple[str, str] | None = None,
    mixes_tenants: bool = True,
) -> HttpResponse:
    """The page `name`: `gather` reads what its part `jobs/live/<name>.html` shows, within the patience of a page.
    `mixes_tenants`: so it is only for who sees all of them."""
    if request.method not in ("GET", "HEAD"):
        return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
    if not request.user.has_perm(permission):
        raise PermissionDenied
    if mixes_tenants and scope_of(request.user) is not None:
        raise PermissionDenied("This page is about all tenants, and you see some of them.")
    request.current_app = admin.admin_site.name
    with timezone.override(preferences(request).tz):
        part = live_part(request, name, gather, using)
        if LIVE in request.GET:
            return fragment(request, part)
        context = {
            **admin.admin_site.each_context(request),
            "title": title,
            "opts": admin.opts,
            "section": section or name,
            "part": part,
            "live_url": live_url(request),
            "parent": parent,
        }
        return answered(request, TemplateResponse(request, template, context).render())


def live_part(request: HttpRequest, name: str, gather: Gather, using: str = "default") -> str:
    """The markup of the refreshing part; of one that took too long or had no place, what to do about it."""
    again = request.GET.copy()
    again.pop(LIVE, None)
    context = {"patience": f"{PATIENCE.total_seconds():g} s", "again": f"?{again.urlencode()}"}
    try:
        with place(request, using), bounded(using):
            context = gather(request)
    except TooSlow:
        name = "_too_slow"
    except NoPlace:
        name = "_no_place"
    return render_to_string(f"jobs/live/{name}.html", context, request)


def fragment(request: HttpRequest, part: str) -> HttpResponse:
    """The part alone; nothing but its header when the asking page has the same already."""
    etag = f'"{hashlib.blake2b(part.encode(), digest_size=12).hexdigest()}"'
    response = get_conditional_response(request, etag=etag, response=HttpResponse(part)) or HttpResponse(part)
    response["ETag"] = etag
    return answered(request, response)


def live_url(request: HttpRequest, path: str | None = None) -> str:
    asked = request.GET.copy()
    asked[LIVE] = "1"
    return f"{path or request.path}?{asked.urlencode()}"


def in_zone(view: View) -> View:
    """The times of its pages are in the operator's zone."""

    @wraps(view)
    def zoned(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        with timezone.override(preferences(request).tz):
            response = view(request, *args, **kwargs)
            if isinstance(response, TemplateResponse) and not response.is_rendered:
                response.render()
        return answered(request, response)

    return zoned
