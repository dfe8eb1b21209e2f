"""Fields of forms that Django's admin leaves without a name on some of its versions."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.widgets import AdminSplitDateTime


class SplitMoment(AdminSplitDateTime):
    """Date and time, each with a name of its own."""

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context(name, value, attrs)
        for part, label in zip(context["widget"]["subwidgets"], ("Date", "Time"), strict=True):
            part["attrs"]["aria-label"] = label
        return context
