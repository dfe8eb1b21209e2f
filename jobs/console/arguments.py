"""The fields of what a verb takes besides jobs and a reason: a time, a priority or a queue."""

from __future__ import annotations

from typing import Any

from django import forms

from jobs.operator import COMMANDS

_AT = "%Y-%m-%dT%H:%M"


class Arguments(forms.Form):
    required_css_class = "required"
    run_at = forms.DateTimeField(
        label="Run at",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format=_AT),
        help_text="In your zone; in the past means now.",
    )
    priority = forms.IntegerField(min_value=-100, max_value=100, help_text="-100 to 100; larger runs first.")
    queue = forms.CharField(max_length=100)

    def __init__(self, verb: str, data: Any = None) -> None:
        super().__init__(data)
        self.names = COMMANDS[verb].arguments if verb in COMMANDS else ()
        for name in {"run_at", "priority", "queue"} - set(self.names):
            del self.fields[name]

    def arguments(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in self.names}
