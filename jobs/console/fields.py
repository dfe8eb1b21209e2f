"""The fields of the filter forms."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from jobs.ids import due_of

_AT = "%Y-%m-%dT%H:%M"


def moment(label: str) -> forms.DateTimeField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format=_AT)
    return forms.DateTimeField(label=label, required=False, widget=widget)


def as_text(moment: datetime) -> str:
    return timezone.localtime(moment).strftime(_AT)


def word(label: str, limit: int = 100) -> forms.CharField:
    return forms.CharField(label=label, required=False, max_length=limit)


class IdField(forms.UUIDField):
    default_error_messages = {"invalid": "This is no job id."}

    def to_python(self, value: Any) -> Any:
        found: Any = super().to_python(value)
        try:
            if found:
                due_of(found)
        except OverflowError:
            raise ValidationError(self.error_messages["invalid"], code="invalid") from None
        return found


class Place(forms.CharField):
    """`time~id`: a place in a list by end."""

    def clean(self, value: Any) -> tuple[datetime, UUID] | None:
        text, _, tail = str(super().clean(value) or "").partition("~")
        if not text:
            return None
        try:
            moment = parse_datetime(text)
            if moment is None or moment.tzinfo is None:
                raise ValueError(text)
            return moment, UUID(tail)
        except ValueError:
            raise ValidationError("This is no place in the list.") from None
