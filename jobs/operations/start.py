"""Submit: an operation is written down, with who, why and until when jobs count; the operations loop does the rest."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.db import transaction

from jobs import clock, operator, scope
from jobs.conf import conf
from jobs.errors import InvalidJob, SchedulerError
from jobs.models import ActionResult, Operation, OperationState
from jobs.moving import checked_priority, checked_queue
from jobs.newjob import moment
from jobs.operations.holding import target_of
from jobs.operations.limits import BULK, CHUNK, PROBE, RATE, RATES, ceiling_of, must_ask
from jobs.operations.preview import FITTING, narrowed
from jobs.search.count import count
from jobs.text import storable


class OperationRefused(SchedulerError, ValueError):
    """The operation cannot be started as asked; says what to change."""


def submit(
    user: Any,
    verb: str,
    line: str,
    reason: str,
    *,
    rate: int = RATE,
    arguments: dict[str, Any] | None = None,
    hold: bool = False,
    using: str = "default",
) -> Operation:
    """Start `verb` on all jobs that the line finds now. `arguments`: run_at (an aware datetime), priority or queue, as
    the verb takes. `rate`: jobs a second at most. More jobs than SCHEDULER["approve_above"] wait for somebody else to
    `approve`. `hold`: nothing of its group, type, tenant or queue starts until it is over; for a cancel that names one of
    them alone. `operator.Denied` and `OperationRefused` are recorded in the audit;
    SearchError for a line that cannot be understood, that finds every job, or none that the verb could change."""
    target: dict[str, Any] = {"query": line[:1000]}
    for permission in (operator.COMMANDS[verb].permission, BULK):
        operator.require(user, permission, f"{verb} all", target, reason, using)
    now = clock.asked(using)
    query = narrowed(verb, line, now, scope.scope_of(user))
    given = checked(verb, arguments or {})
    ceiling = ceiling_of(user)
    found = count(query, using)
    problem = _problem(reason, rate, found.number if found.how == "exact" else None, ceiling)
    if problem:
        skipped = Counter({problem[:100]: 1})
        operator.record(
            user, f"{verb} all", target, reason, using, matched=found.number or 0, skipped=skipped,
            result=ActionResult.FAILED,
        )  # fmt: skip
        raise OperationRefused(problem)
    if hold and (target_of_hold := target_of(verb, query, user)) is None:
        raise OperationRefused("there is no single group, type, tenant or queue that you may hold for it")
    return write(
        user,
        verb,
        reason,
        using,
        hold=target_of_hold if hold else None,
        query=str(query),
        arguments=given,
        cutoff=now,
        ceiling=ceiling,
        rate=rate,
        probe=PROBE if verb == "retry" and (found.number or CHUNK) > PROBE else 0,
        expected=found.number,
        expected_how=found.how,
        state=OperationState.ASKED if must_ask(found.number) else OperationState.QUEUED,
    )


def write(
    user: Any, verb: str, reason: str, using: str, *, hold: tuple[str, str] | None = None, **values: Any
) -> Operation:
    """The operation, its hold and its row in the audit, in one transaction."""
    within = scope.scope_of(user)
    with transaction.atomic(using):
        action_id = operator.next_id(using)
        operation = Operation(
            verb=verb,
            reason=operator.clean_reason(reason),
            author_id=user.pk,
            author_name=user.get_username()[:150],
            scope=None if within is None else sorted(within),
            action_id=action_id,
            chunk_size=CHUNK,
            **values,
        )
        operation.save(using=using, force_insert=True)
        if hold:
            why = f"operation {operation.pk}: {operation.reason}"
            operation.hold_id = operator.pause(user, *hold, reason=storable(why, 500), using=using).pk
            operation.save(using=using, update_fields=["hold_id"])
        target = {"query": operation.query, "operation": operation.pk}
        operator.record(
            user, f"{verb} all", target, reason, using, pk=action_id, operation_id=operation.pk,
            matched=min(operation.expected or 0, 2**31 - 1), after=operation.arguments,
        )  # fmt: skip
    return operation


def checked(verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a verb as JSON. OperationRefused names what is missing or wrong."""
    if verb not in FITTING:
        raise OperationRefused(f"there is no operation {verb!r}; there are {', '.join(FITTING)}")
    wanted = set(operator.COMMANDS[verb].arguments)
    if set(arguments) != wanted:
        raise OperationRefused(
            f"{verb} takes {' and '.join(sorted(wanted)) or 'no arguments'}, not {', '.join(sorted(arguments)) or 'none'}"
        )
    try:
        return {name: _CHECKS[name](value) for name, value in arguments.items()}
    except InvalidJob as error:
        raise OperationRefused(str(error)) from error


def _run_at(value: Any) -> str:
    return moment("run_at", value, clock.now() + conf().max_horizon).isoformat()


_CHECKS = {"run_at": _run_at, "priority": checked_priority, "queue": checked_queue}


def _problem(reason: str, rate: int, found: int | None, ceiling: int) -> str:
    if not reason.strip():
        return "an operation needs a reason: it is kept in the audit"
    if rate not in RATES:
        return f"the rate is {rate}; it may be {RATES[0]} to {RATES[-1]:,} jobs a second"
    if found == 0:
        return "no job fits: nothing would be done"
    if found is not None and found > ceiling:
        return (
            f"{found:,} jobs fit, and you may change {ceiling:,} in one operation: narrow the search, or ask somebody "
            "with a higher limit"
        )
    return ""
