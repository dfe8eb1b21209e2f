"""Holding: what an operation cancels does not start while it works; its hold ends with it."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from jobs import holds, scope
from jobs.errors import InvalidValue
from jobs.models import Operation
from jobs.search import Query

ADD = "jobs.add_hold"
_NAMES = ("group", "type", "tenant", "queue")


def target_of(verb: str, query: Query, user: Any) -> tuple[str, str] | None:
    """The scope and key of the one hold that keeps all jobs of this search from starting, if they have one and this user
    may hold it."""
    if verb != "cancel" or not user.has_perm(ADD) or scope.scope_of(user) is not None:
        return None
    said = [term for term in query.terms if term.name in _NAMES and not term.negated]
    if len(said) != 1 or len(said[0].values) != 1 or "*" in said[0].values[0]:
        return None
    return said[0].name, said[0].values[0]


def release(operation: Operation, using: str) -> None:
    """In the transaction in which it ends. Somebody may have lifted the hold before."""
    if operation.hold_id is None:
        return
    try:
        with transaction.atomic(using):
            holds.lift(operation.hold_id, using=using)
    except InvalidValue:
        return
