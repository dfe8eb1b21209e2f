"""How values look on a page: safe from markup, from invisible characters and from passwords in texts."""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from jobs.console.amounts import lasting
from jobs.text import scrub

_KEPT = "\n\t\u200d"  # line ends, and the joiner inside emoji
NOTHING = "\N{EN DASH}"
BOUNDS = ("max_running", "rate")
"""Settings that bound nothing while they are empty."""


def visible(text: Any) -> str:
    """Control and direction characters as what they are; they could make one text look like another."""
    return "".join(
        f"\\u{ord(c):04x}" if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in _KEPT else c
        for c in str(text)
    )


def clean(text: Any) -> str:
    """A text that came from outside, without passwords. They are hidden on writing already; rows may be older."""
    return visible(scrub(str(text)))


def badge(state: str) -> str:
    return format_html('<span class="state state-{}">{}</span>', str(state).replace(" ", "-"), state)


def moment(value: datetime | None) -> str:
    """A time in the current zone, which is named."""
    if value is None:
        return NOTHING
    local = timezone.localtime(value)
    return format_html('<time datetime="{}">{}</time>', value.isoformat(), f"{local:%Y-%m-%d %H:%M:%S %Z}")


def ago(value: datetime | None) -> str:
    """How long ago, or in how long; the exact time is its title."""
    if value is None:
        return NOTHING
    seconds = (timezone.now() - value).total_seconds()
    local = timezone.localtime(value)
    told = f"{lasting(seconds)} ago" if seconds >= 0 else f"in {lasting(-seconds)}"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', value.isoformat(), f"{local:%Y-%m-%d %H:%M:%S %Z}", told
    )


def target(hold: Any) -> str:
    """What a hold stops: "Queue mail", "Everything"."""
    return "Everything" if hold.scope == "all" else f"{hold.scope.capitalize()} {visible(hold.key)}"


def link(name: str, pk: Any, text: Any) -> str:
    """A link to the admin page of one row."""
    return leading(reverse(f"admin:jobs_{name}_change", args=[pk]), text)


def leading(url: str, text: Any) -> str:
    return format_html('<a href="{}">{}</a>', url, text)


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What was changed, in words: name, value before, value after."""
    names = sorted({*before, *after})
    return [(clean(name.replace("_", " ")), _setting(name, before), _setting(name, after)) for name in names]


def _setting(name: str, values: dict[str, Any]) -> str:
    value = values.get(name, NOTHING)
    if value in (None, ""):
        return "unlimited" if name in BOUNDS else NOTHING
    return ("yes" if value else "no") if isinstance(value, bool) else clean(value)


def shown(value: Any) -> Any:
    """Any value of a row as a page shows it; texts are escaped by whoever inserts the result."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if hasattr(value, "__html__") else visible(value)
