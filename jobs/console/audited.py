"""Pages on which operators edit rows: each save and deletion is one `OperatorAction`, with before and after."""

from __future__ import annotations

from typing import Any

from django.db import router
from django.forms import ModelForm, model_to_dict
from django.http import HttpRequest

from jobs import operator
from jobs.console.base import Page
from jobs.console.origin import person
from jobs.models import Tenant

UNSHOWN = {"payload": "(changed, not shown)"}
"""Fields whose values the audit does not repeat."""


class Audited(Page):
    """The record is written in the transaction of the change: Django's views open one."""

    actions = None  # no deletion of many at once: each is a command of its own

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        super().save_model(request, obj, form, change)
        before = {name: form.initial.get(name) for name in form.changed_data} if change else {}
        after = {name: model_to_dict(obj, [name]).get(name) for name in form.changed_data}
        if after or not change:
            self._record(request, "change" if change else "add", obj, before, after)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        pk = obj.pk
        super().delete_model(request, obj)
        obj.pk = pk
        self._record(request, "delete", obj, model_to_dict(obj), {})

    def _record(self, request: HttpRequest, verb: str, obj: Any, before: Any, after: Any) -> None:
        target = {self.opts.model_name or "": str(obj), "id": obj.pk}
        operator.record(
            person(request),
            verb,
            target,
            using=router.db_for_write(self.model),
            changed=1,
            before=_plain(before),
            after=_plain(after),
            tenant_id=obj.pk if isinstance(obj, Tenant) else getattr(obj, "tenant_id", None),
        )


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: UNSHOWN.get(name) or (value if isinstance(value, int | None) else str(value))
        for name, value in values.items()
    }
