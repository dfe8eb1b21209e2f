"""Fields of forms that Django's admin leaves without a name on some of its versions."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.widgets import AdminSplitDateTime, AutocompleteSelect


class SplitMoment(AdminSplitDateTime):
    """Date and time, each with a name of its own."""

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context(name, value, attrs)
        for part, label in zip(context["widget"]["subwidgets"], ("Date", "Time"), strict=True):
            part["attrs"]["aria-label"] = label
        return context


class Choice(AutocompleteSelect):
    """With words in it while nothing is chosen: they are its name for who cannot see it."""

    def optgroups(self, name: str, value: Any, attrs: Any = None) -> Any:
        """What is no number chooses nobody: the form says so, and is shown again."""
        return super().optgroups(name, [each for each in value if str(each).isdecimal()], attrs)

    def build_attrs(self, base_attrs: Any, extra_attrs: Any = None) -> Any:
        told = f"Choose a {self.field.name}"
        return super().build_attrs(base_attrs, extra_attrs) | {"data-placeholder": told}
