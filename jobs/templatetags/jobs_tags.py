"""Filters of the templates; what they do is said in `jobs.console.show`."""

from __future__ import annotations

from django import template

from jobs.console import show

register = template.Library()
register.filter("badge", show.badge)
register.filter("moment", show.moment)
register.filter("shown", show.shown)
register.filter("clean", show.clean)
register.filter("visible", show.visible)
