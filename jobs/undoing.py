"""Take back a change of limits, as long as nobody has changed them since. It is one more action in the audit, which can
be taken back itself."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from jobs import limiting, operator, scope
from jobs.errors import ActionNotFound
from jobs.models import ActionResult, OperatorAction

VERBS = ("limit", "undo limit")


def change(user: Any, pk: int, using: str = "default") -> OperatorAction:
    """The change of limits with this number, as it exists for the user. ActionNotFound."""
    seen = scope.scope_of(user)
    found = (
        OperatorAction.objects.using(using).filter(pk=pk, verb__in=VERBS, result=ActionResult.DONE).first()
    )
    if found is None or (seen is not None and found.tenant_id not in seen):
        raise ActionNotFound(f"there is no change of limits {pk}")
    return found


def names_of(action: OperatorAction) -> dict[str, str]:
    """Whose limits were changed: a tenant's, a queue's, or those of the tenant in the queue."""
    return {name: action.target[name] for name in ("tenant", "queue") if name in action.target}


def undo(
    user: Any, pk: int, reason: str = "", using: str = "default"
) -> tuple[limiting.Limited, OperatorAction]:
    """Set what was before it. ActionNotFound; `operator.Denied`; ChangedSince when it does not stand any more."""
    action = change(user, pk, using)
    names = names_of(action)
    target = {**names, "action": action.pk}
    operator.require(user, operator.limits_permission(names), "undo limit", target, reason, using)
    with transaction.atomic(using):
        row, stood = limiting.undo(action.before, action.after, **names, using=using)
        return row, operator.record_limit(
            user, "undo limit", target, row, stood, action.before, reason, using
        )
