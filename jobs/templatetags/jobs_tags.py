"""Filters and tags of the templates; what the filters do is said in `jobs.console.show` and `jobs.console.amounts`."""

from __future__ import annotations

from typing import Any

from django import template
from django.http import HttpRequest
from django.template.context import RequestContext
from django.utils import timezone

from jobs.console import amounts, held, overview, page, sections, show
from jobs.console.preferences import preferences
from jobs.scope import slugs_of

register = template.Library()
register.filter("badge", show.badge)
register.filter("moment", show.moment)
register.filter("ago", show.ago)
register.filter("shown", show.shown)
register.filter("clean", show.clean)
register.filter("target", show.target)
register.filter("visible", show.visible)
register.filter("lasting", amounts.lasting)
register.filter("size", amounts.size)
register.filter("about", amounts.about)


@register.filter
def number(value: Any) -> str:
    """With a comma between thousands."""
    return show.NOTHING if value is None else f"{value:,}" if isinstance(value, int | float) else str(value)


@register.filter
def percent_of(part: float, whole: float) -> str:
    return amounts.percent(part, whole)


@register.simple_tag(takes_context=True)
def search_url(context: RequestContext, **terms: Any) -> str:
    """The list of jobs that fit all of these terms of its search."""
    return sections.search(_site(context), **terms)


@register.simple_tag(takes_context=True)
def named_url(context: RequestContext, name: str, value: Any) -> str:
    """The page of a queue or type, which may have any name."""
    return sections.named(name, value, _site(context))


@register.inclusion_tag("jobs/_nav.html", takes_context=True)
def console_nav(context: RequestContext, section: str = "") -> dict[str, Any]:
    """The strip on top of all pages: sections, search, what is held."""
    request: HttpRequest = context["request"]
    opts = context.get("opts")
    return {
        "request": request,
        "links": sections.links(request),
        "section": section or sections.of_model(getattr(opts, "model_name", "") or ""),
        "search": sections.address("jobs_job_changelist", _site(context))
        if request.user.has_perm("jobs.view_job")
        else "",
        "query": request.GET.get("q", "")[:500],
        "holds": held.in_force(_slugs(request)),
        "holds_url": sections.address("jobs_hold_changelist", _site(context)),
        "me_url": sections.address("jobs_job_me", _site(context)),
        "environment": held.environment(),
        "preferences": preferences(request),
    }


@register.simple_tag(takes_context=True)
def overview_part(context: RequestContext) -> str:
    """The refreshing part of the overview: the app's index has no view of ours to fill it."""
    request: HttpRequest = context["request"]
    with timezone.override(preferences(request).tz):
        return page.live_part(request, "overview", overview.gather)


@register.simple_tag(takes_context=True)
def live_url_of(context: RequestContext, name: str) -> str:
    return page.live_url(context["request"], sections.address(name, _site(context)))


def _slugs(request: HttpRequest) -> tuple[str, ...] | None:
    slugs = slugs_of(request.user)
    return None if slugs is None else tuple(slugs)


def _site(context: RequestContext) -> str:
    return getattr(context.get("request"), "current_app", None) or "admin"
