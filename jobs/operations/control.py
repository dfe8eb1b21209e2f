"""Pause, resume, stop and undo an operation; each is recorded like the operation itself."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from jobs import operator, scope
from jobs.models import Operation, OperationState
from jobs.models.operation import OPEN, OVER
from jobs.operations.holding import release
from jobs.operations.limits import APPROVE, BULK, RATES, ceiling_of
from jobs.operations.start import OperationRefused, write


def visible(user: Any, using: str = "default") -> Any:
    """The operations that exist for this user: all, or those that stayed within their tenants."""
    found = Operation.objects.using(using)
    seen = scope.scope_of(user)
    return (
        found.all() if seen is None else found.filter(scope__isnull=False, scope__contained_by=sorted(seen))
    )


def pause(user: Any, pk: int, reason: str = "", using: str = "default") -> Operation:
    """No chunk begins after this returns. `operator.Denied`; OperationRefused when it does not run."""
    return _set(user, pk, "pause operation", OPEN, OperationState.PAUSED, reason, using)


def resume(user: Any, pk: int, reason: str = "", using: str = "default") -> Operation:
    """It goes on where it was; what a probe has found is accepted by this."""
    return _set(user, pk, "resume operation", (OperationState.PAUSED,), OperationState.RUNNING, reason, using)


def stop(user: Any, pk: int, reason: str = "", using: str = "default") -> Operation:
    """It never goes on. What it did stays done: `undo` takes it back."""
    waiting = (OperationState.PAUSED, OperationState.ASKED)
    return _set(user, pk, "stop operation", (*OPEN, *waiting), OperationState.STOPPED, reason, using)


def approve(user: Any, pk: int, reason: str = "", using: str = "default") -> Operation:
    """What somebody else has asked for may begin. `operator.Denied`; OperationRefused for who has asked it, and when it
    waits for nobody."""
    operation = _get(user, pk, using)
    operator.require(user, APPROVE, "approve operation", {"operation": pk}, reason, using)
    if getattr(user, "pk", None) is None or user.pk == operation.author_id:
        raise OperationRefused("somebody else approves it, not who has asked for it")
    states = (OperationState.ASKED,)
    return _set(user, pk, "approve operation", states, OperationState.QUEUED, reason, using, approver=user)


def pace(user: Any, pk: int, rate: int, reason: str = "", using: str = "default") -> Operation:
    """From the next chunk on `rate` jobs a second at most. `operator.Denied`; OperationRefused when it is over."""
    _require(user, _get(user, pk, using), "pace operation", reason, using)
    if rate not in RATES:
        raise OperationRefused(f"the rate is {rate}; it may be {RATES[0]} to {RATES[-1]:,} jobs a second")
    with transaction.atomic(using):
        operation: Operation = Operation.objects.using(using).select_for_update().get(pk=pk)
        if operation.state in OVER:
            raise OperationRefused(f"operation {pk} is {operation.state}")
        before, operation.rate = operation.rate, rate
        operation.save(using=using, update_fields=["rate"])
        operator.record(
            user, "pace operation", {"operation": pk}, reason, using, operation_id=pk, matched=1, changed=1,
            before={"rate": before}, after={"rate": rate},
        )  # fmt: skip
    return operation


def undo(user: Any, pk: int, reason: str, using: str = "default") -> Operation:
    """A new operation that takes back what this one did, as far as nothing has happened to the jobs since."""
    operation = _get(user, pk, using)
    _require(user, operation, "undo operation", reason, using)
    if operation.state not in OVER and operation.state != OperationState.PAUSED:
        raise OperationRefused("it is still at work: stop or pause it first")
    if operation.undoes_id:
        raise OperationRefused("this operation is an undo itself: do the first one again instead")
    if operation.undone_by.using(using).exclude(state=OperationState.FAILED).exists():
        raise OperationRefused("it has been undone already")
    if not operation.changed + operation.requested:
        raise OperationRefused("it has changed nothing")
    if not reason.strip():
        raise OperationRefused("an operation needs a reason: it is kept in the audit")
    return write(
        user,
        "undo",
        reason,
        using,
        query=operation.query,
        undoes=operation,
        cutoff=operation.cutoff,
        ceiling=max(ceiling_of(user), operation.changed + operation.requested),
        rate=operation.rate,
        expected=operation.changed + operation.requested,
        expected_how="exact",
    )


def _set(
    user: Any,
    pk: int,
    verb: str,
    states: Any,
    state: OperationState,
    reason: str,
    using: str,
    *,
    approver: Any = None,
) -> Operation:
    """Waits for the chunk that is being done: its transaction is short. An approver needs no permission of the verb."""
    if approver is None:
        _require(user, _get(user, pk, using), verb, reason, using)
    with transaction.atomic(using):
        operation: Operation = Operation.objects.using(using).select_for_update().get(pk=pk)
        before = operation.state
        if before not in states:
            raise OperationRefused(f"operation {pk} is {before}")
        operation.state, operation.note = state, ""
        if state == OperationState.RUNNING:
            operation.ceiling = max(operation.ceiling, ceiling_of(user))
            operation.next_at = Now()
        if approver is not None:
            operation.approver_name = approver.get_username()[:150]
            operation.next_at = Now()
        if state == OperationState.STOPPED:
            operation.ended_at = Now()
            release(operation, using)
        operation.save(using=using)
        operator.record(
            user, verb, {"operation": pk}, reason, using, operation_id=pk, matched=1, changed=1,
            before={"state": str(before)}, after={"state": str(state)},
        )  # fmt: skip
    operation.refresh_from_db(using=using)
    return operation


def _get(user: Any, pk: int, using: str) -> Operation:
    operation: Operation | None = visible(user, using).filter(pk=pk).first()
    if operation is None:
        raise OperationRefused(f"there is no operation {pk}")
    return operation


def _require(user: Any, operation: Operation, verb: str, reason: str, using: str) -> None:
    of = operation.undoes.verb if operation.undoes else operation.verb
    for permission in (operator.COMMANDS[of].permission, BULK):
        operator.require(user, permission, verb, {"operation": operation.pk}, reason, using)
