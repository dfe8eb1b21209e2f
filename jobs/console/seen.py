"""Forms that know what their user saw: of two who edit the same row the second is told, and overwrites nothing unseen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.forms import model_to_dict
from django.utils.functional import cached_property

from jobs import clock, undoing
from jobs.console import show
from jobs.console.amounts import lasting
from jobs.models import OperatorAction

if TYPE_CHECKING:
    _Form = forms.ModelForm[Any]
else:
    _Form = forms.ModelForm

LATEST = 50
"""Edits of the audit that are looked through for who it was."""


class SeenForm(_Form):
    """`seen` is a hidden field with the values that were on the page; a form that is sent without it is not checked."""

    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk is not None:
            self.initial["seen"] = self._values(self.instance)

    @cached_property
    def changed_data(self) -> list[str]:
        return [name for name in super().changed_data if name != "seen"]

    def clean(self) -> Any:
        found = super().clean()
        if self.instance.pk is not None and self.data.get(self.add_prefix("seen")):
            self._require_seen(self.data[self.add_prefix("seen")])
        return found

    def _require_seen(self, seen: str) -> None:
        rows = type(self.instance)._base_manager.using(self.instance._state.db)
        row = rows.select_for_update(no_key=True).filter(pk=self.instance.pk).first()
        if row is None:
            raise ValidationError("Somebody has deleted this meanwhile.")
        now = self._values(row)
        if now == seen:
            return
        try:
            before, after = json.loads(seen), json.loads(now)
            changes = show.changes(
                *(
                    {name: each[name] for name in after if before[name] != after[name]}
                    for each in (before, after)
                )
            )
        except (ValueError, KeyError, TypeError):
            raise ValidationError("This form is broken: load it again.") from None
        told = ", ".join(f"{name} {old} → {new}" for name, old, new in changes)
        raise ValidationError(f"{self._who()} has changed this meanwhile: {told}. Load it again.")

    def _values(self, row: Any) -> str:
        names = [name for name in self.fields if name != "seen"]
        return json.dumps(model_to_dict(row, names), cls=DjangoJSONEncoder, sort_keys=True)

    def _who(self) -> str:
        """Of the latest edit, as far as the audit tells; edits of limits by command name the row, not its id."""
        name = self.instance._meta.model_name or ""
        for action in OperatorAction.objects.filter(verb__in=("change", *undoing.VERBS)).order_by("-id")[
            :LATEST
        ]:
            if name in action.target and str(action.target[name]) == str(self.instance):
                return f"{show.visible(action.actor_name)}, {lasting(clock.now() - action.at)} ago,"
        return "Somebody"
