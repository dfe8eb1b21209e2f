"""The filter forms of the job lists. What cannot be read is said beside its field; nothing is guessed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict

from jobs.console.fields import IdField, Place, as_text, moment, word
from jobs.console.window import MAX, Window, days, last_hour
from jobs.models import Tenant
from jobs.states import JobState

_YEARS = range(2000, 2200)
NOT_OURS = ("_changelist_filters", "_popup", "_to_field", "e")


class Filter(forms.Form):
    """Defaults stand in for what the address does not say."""

    since = moment("From")
    until = moment("Until")
    tenant = word("Tenant")
    job_type = word("Type")

    default: ClassVar[tuple[int, int]] = (-1, 1)
    cursors: ClassVar[tuple[str, ...]] = ("after", "before")
    not_words: ClassVar[tuple[str, ...]] = ("after", "before", "since", "until", "due_since", "id")
    spans: ClassVar[dict[str, tuple[int, int]]] = {
        "today": (0, 0),
        "yesterday": (-1, -1),
        "last 7 days": (-6, 0),
    }

    def __init__(self, asked: QueryDict) -> None:
        window = days(*self.default)
        data = {"since": as_text(window.start), "until": as_text(window.end)}
        super().__init__(data | {name: value for name, value in asked.items() if value})
        self.unknown = sorted(set(asked) - set(self.fields) - set(NOT_OURS))

    def clean_tenant(self) -> int | None:
        """Its id, as a value: with a subquery in its place the planner takes a rare tenant for a common one."""
        slug = self.cleaned_data["tenant"]
        if not slug:
            return None
        try:
            return Tenant.objects.values_list("id", flat=True).get(slug=slug)
        except Tenant.DoesNotExist:
            raise ValidationError("There is no tenant of this name.") from None

    def clean(self) -> dict[str, Any]:
        found: dict[str, Any] = super().clean() or {}
        since, until = found.get("since"), found.get("until")
        for name in ("since", "until"):
            if found.get(name) and found[name].year not in _YEARS:
                self.add_error(name, "There are no jobs so far away.")
        if since and until and not self.errors:
            if since >= until:
                self.add_error("until", "This is not later than the beginning.")
            elif until - since > MAX:
                self.add_error("until", f"A window has at most {MAX.days} days.")
        return found

    @property
    def window(self) -> Window:
        return Window(self.cleaned_data["since"], self.cleaned_data["until"])

    @property
    def asked_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name not in self.cursors]

    @property
    def presets(self) -> list[tuple[str, str]]:
        """Links to other windows for the same words."""
        words = {
            name: self.data[name] for name in self.fields if name in self.data and name not in self.not_words
        }
        windows = {"last hour": last_hour(), **{label: days(*span) for label, span in self.spans.items()}}
        return [
            (label, "?" + urlencode(words | {"since": as_text(window.start), "until": as_text(window.end)}))
            for label, window in windows.items()
        ]


class JobFilter(Filter):
    """By due time."""

    state = forms.ChoiceField(required=False, choices=[("", "any"), *((s.value, s.value) for s in JobState)])
    group = word("Group")
    id = IdField(label="Job id", required=False)
    after = IdField(required=False)
    before = IdField(required=False)

    spans = Filter.spans | {"tomorrow": (1, 1), "next 7 days": (0, 6)}
    field_order = ["since", "until", "state", "job_type", "tenant", "group", "id"]


class FailedFilter(Filter):
    """By the time of the failure; the due days that are looked at are a window of their own."""

    fingerprint = word("Fingerprint", 16)
    due_since = moment("Due since")
    after = Place(required=False)
    before = Place(required=False)

    default = (-1, 0)
    field_order = ["since", "until", "due_since", "job_type", "tenant", "fingerprint"]
    look_back = timedelta(days=7)

    def __init__(self, asked: QueryDict) -> None:
        super().__init__(asked)
        self.fields["due_since"].help_text = "Empty: 7 days before."

    def clean(self) -> dict[str, Any]:
        found = super().clean()
        due_since = found.get("due_since")
        if due_since and not self.errors and not MAX >= found["since"] - due_since >= -MAX:
            self.add_error("due_since", f"At most {MAX.days} days from the beginning of the window.")
        return found

    @property
    def due_window(self) -> Window:
        """Nothing fails before it is due, so the end is that of the window."""
        since = self.cleaned_data["due_since"] or self.cleaned_data["since"] - self.look_back
        return Window(since, self.cleaned_data["until"])
