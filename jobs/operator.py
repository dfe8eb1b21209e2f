"""What a person does to jobs, always audited: one `OperatorAction` for each command, also for a refused one.

Admin, console and commands go through here, so that the permission is asked where the deed is done. Jobs of tenants that
the person does not see do not exist for these verbs.
"""

from __future__ import annotations

import getpass
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db import connections, transaction

from jobs import clock, holds, limiting, moving, scope, verbs
from jobs import triage as triaging
from jobs.errors import InvalidValue, TooManyReveals
from jobs.models import ActionResult, Hold, OperatorAction, Queue, Tenant, Triage
from jobs.report import Report
from jobs.text import scrub, storable

LIMIT = 100
"""Jobs one command may name; more of them need a bulk operation."""
REASON_BYTES, TARGET_BYTES = 500, 4000


class Shell:
    """Who runs a command on a host: may do all, and is recorded by the name of the account."""

    is_authenticated = True
    origin = ("command", None)

    def get_username(self) -> str:
        try:
            return f"shell: {getpass.getuser()}"
        except (KeyError, OSError):  # an account without a name
            return f"shell: {os.getuid()}"

    def has_perm(self, permission: str) -> bool:
        return True


User = AbstractBaseUser | AnonymousUser | Shell


class Denied(PermissionDenied):
    """The attempt has been recorded; `permission` is what is missing."""

    def __init__(self, permission: str) -> None:
        self.permission = permission
        super().__init__(f"You need the permission {permission} for this.")


@dataclass(frozen=True)
class Command:
    permission: str
    done: str
    run: Callable[..., Report]
    """Called with the ids, the command's arguments, `using` and `action_id`."""
    arguments: tuple[str, ...] = ()


COMMANDS = {
    "retry": Command("jobs.retry_job", "retried", verbs.retry),
    "cancel": Command("jobs.cancel_job", "cancelled", verbs.cancel),
    "reschedule": Command("jobs.reschedule_job", "rescheduled", verbs.reschedule, ("run_at",)),
    "prioritize": Command("jobs.prioritize_job", "prioritized", moving.prioritize, ("priority",)),
    "move": Command("jobs.move_job", "moved", moving.move, ("queue",)),
}
REVEAL = "jobs.reveal_payload"
REVEALS, REVEALS_IN = 60, timedelta(hours=1)
TRIAGE = "jobs.triage_error"
DEPLOY = "jobs.mark_deploy"
DEPLOY_BYTES = 100


def through(user: User, via: str, address: str | None = None) -> User:
    """The same user, whose commands are recorded as given `via` (console, command) and from this address."""
    user.origin = (via[:40], address)  # type: ignore[union-attr]
    return user


def act(
    user: User, verb: str, ids: Sequence[UUID], reason: str = "", using: str = "default", **arguments: Any
) -> tuple[OperatorAction, Report]:
    """Do `verb` to these jobs, up to LIMIT of them, and record it in the same transaction. Denied, and whatever the
    verb raises, are recorded as well; inside a caller's transaction that record shares its fate."""
    if not 0 < len(set(ids)) <= LIMIT:
        raise ValueError(f"a command names 1 to {LIMIT} jobs, not {len(set(ids))}")
    command, target = COMMANDS[verb], _jobs(ids)
    if set(arguments) != set(command.arguments):
        raise TypeError(
            f"{verb} takes {', '.join(command.arguments) or 'no arguments'}, not {', '.join(arguments)}"
        )
    after = {name: str(value) for name, value in arguments.items()}
    require(user, command.permission, verb, target, reason, using)
    try:
        with transaction.atomic(using):
            action_id = next_id(using)
            seen = scope.within(user, ids, using)
            report = Report()
            if seen:
                report = command.run(sorted(seen), *arguments.values(), using=using, action_id=action_id)
            report.skipped += Counter({"not found": len(set(ids) - seen)})
            action = record(
                user, verb, target, reason, using, pk=action_id, changed=report.changed, requested=report.requested,
                skipped=report.skipped, after=after,
            )  # fmt: skip
    except Exception as error:
        skipped = Counter({f"error: {type(error).__name__}": len(ids)})
        record(user, verb, target, reason, using, skipped=skipped, after=after, result=ActionResult.FAILED)
        raise
    return action, report


def pause(
    user: User,
    scope: str,
    key: str = "",
    *,
    reason: str = "",
    until: datetime | None = None,
    using: str = "default",
) -> Hold:
    """`holds.hold` by this user."""
    target = {"scope": scope, "key": key, "until": until and until.isoformat()}
    require(user, "jobs.add_hold", "pause", target, reason, using)
    with transaction.atomic(using):
        made = holds.hold(scope, key, reason=reason, by=user.get_username()[:150], until=until, using=using)
        record(user, "pause", {**target, "key": made.key, "hold": made.pk}, reason, using, changed=1)
    return made


def resume(
    user: User, hold: Hold, *, rate: int | None = None, reason: str = "", using: str = "default"
) -> Hold:
    """`holds.lift` by this user."""
    target = {"scope": hold.scope, "key": hold.key, "hold": hold.pk, "rate": rate}
    require(user, "jobs.change_hold", "resume", target, reason, using)
    with transaction.atomic(using):
        lifted = holds.lift(hold, rate=rate, using=using)
        record(user, "resume", target, reason, using, changed=1)
    return lifted


def limit(
    user: User,
    changes: dict[str, Any],
    *,
    tenant: str | None = None,
    queue: str | None = None,
    reason: str = "",
    using: str = "default",
) -> tuple[limiting.Limited, OperatorAction]:
    """`limiting.limit` by this user, recorded with before and after."""
    target = {name: value for name, value in (("tenant", tenant), ("queue", queue)) if value is not None}
    require(user, limits_permission(target), "limit", target, reason, using)
    with transaction.atomic(using):
        row, before = limiting.limit(changes, tenant=tenant, queue=queue, using=using)
        return row, record_limit(user, "limit", target, row, before, changes, reason, using)


def limits_permission(target: dict[str, Any]) -> str:
    """What it takes to change the limits of this tenant, queue, or tenant in a queue."""
    return "jobs.change_tenant" if "tenant" in target else "jobs.change_queue"


def record_limit(
    user: User,
    verb: str,
    target: dict[str, Any],
    row: limiting.Limited,
    before: dict[str, Any],
    after: dict[str, Any],
    reason: str,
    using: str,
) -> OperatorAction:
    tenant_id = None if isinstance(row, Queue) else row.pk if isinstance(row, Tenant) else row.tenant_id
    return record(
        user, verb, target, reason, using, changed=1, before=_plain(before), after=_plain(after), tenant_id=tenant_id
    )  # fmt: skip


def triage(
    user: User,
    fingerprint: str,
    state: str,
    *,
    owner: str = "",
    note: str = "",
    until: datetime | None = None,
    seen: datetime | bool | None = True,
    using: str = "default",
) -> Triage | None:
    """`triage.mark` by this user, recorded with before and after."""
    target = {"error": fingerprint}
    require(user, TRIAGE, "triage", target, note, using)
    with transaction.atomic(using):
        row, before = triaging.mark(
            fingerprint, state, owner=owner, note=note, until=until, by=user.get_username()[:150], seen=seen,
            using=using,
        )  # fmt: skip
        after = {name: getattr(row, name) for name in triaging.FIELDS} if row else {"state": state}
        record(user, "triage", target, note, using, changed=1, before=_plain(before), after=_plain(after))
    return row


def deploy(user: User, name: str, note: str = "", using: str = "default") -> OperatorAction:
    """Record that something new runs from now on. Charts show it as a mark; the audit is where it is kept."""
    name = storable(scrub(name.strip()), DEPLOY_BYTES)
    if not name:
        raise InvalidValue("name", "a deploy has a name: a version, a tag or a commit")
    require(user, DEPLOY, "deploy", {"deploy": name}, note, using)
    return record(user, "deploy", {"deploy": name}, note, using)


def reveal(user: User, job_id: UUID, reason: str, using: str = "default") -> OperatorAction:
    """Record that `user` looks at the payload of this job. Denied; TooManyReveals after REVEALS of them in an hour: who
    needs more has another way to the data."""
    target = _jobs([job_id])
    require(user, REVEAL, "reveal", target, reason, using)
    latest = OperatorAction.objects.using(using).filter(
        actor_name=user.get_username()[:150], verb="reveal", result=ActionResult.DONE
    )
    before = latest.order_by("-id").values_list("at", flat=True)[REVEALS - 1 : REVEALS]
    if any(at > clock.now(using) - REVEALS_IN for at in before):
        skipped = Counter({"too many": 1})
        record(user, "reveal", target, reason, using, skipped=skipped, result=ActionResult.FAILED)
        raise TooManyReveals(f"you have looked at {REVEALS} payloads in the last hour, which is the most")
    return record(user, "reveal", target, reason, using)


def require(
    user: User, permission: str, verb: str, target: dict[str, Any], reason: str = "", using: str = "default"
) -> None:
    """Denied, after recording the attempt, unless `user` has the permission."""
    if not user.has_perm(permission):  # type: ignore[union-attr]
        skipped = Counter(denied=len(target.get("jobs", [target])))
        record(user, verb, target, reason, using, skipped=skipped, result=ActionResult.DENIED)
        raise Denied(permission)


def record(
    user: User,
    verb: str,
    target: dict[str, Any],
    reason: str = "",
    using: str = "default",
    *,
    pk: int | None = None,
    matched: int | None = None,
    changed: int = 0,
    requested: int = 0,
    skipped: Counter[str] | None = None,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    result: ActionResult = ActionResult.DONE,
    tenant_id: int | None = None,
    operation_id: int | None = None,
) -> OperatorAction:
    """Write the audit row of one command. It is inserted once and never touched again."""
    via, address = getattr(user, "origin", ("code", None))
    action = OperatorAction(
        pk=pk,
        verb=verb,
        actor_id=user.pk if isinstance(user, AbstractBaseUser) and user._state.db in (None, using) else None,
        actor_name=user.get_username()[:150],
        via=via,
        address=address,
        target=_kept(target),
        before=_kept(before or {}),
        after=_kept(after or {}),
        tenant_id=tenant_id,
        operation_id=operation_id,
        reason=clean_reason(reason),
        result=result,
        matched=len(target.get("jobs", [target])) if matched is None else matched,
        changed=changed,
        requested=requested,
        skipped=dict(skipped or {}),
    )
    action.save(using=using, force_insert=True)
    return action


def clean_reason(reason: str) -> str:
    """As it is kept: without passwords, in what can be stored."""
    return storable(scrub(reason.strip()), REASON_BYTES)


def _kept(value: Any) -> Any:
    """What was asked for, as it can be stored: who asks for what cannot be is told so, and recorded."""
    if isinstance(value, dict):
        return {name: _kept(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_kept(item) for item in value]
    return storable(value, TARGET_BYTES) if isinstance(value, str) else value


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, int | float | str | None) else str(value)
        for name, value in values.items()
    }


def next_id(using: str) -> int:
    """The id of an action before its row: the verb writes it beside what it changes."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence('jobs_operatoraction', 'id'))")
        return int(cursor.fetchone()[0])


def _jobs(ids: Sequence[UUID]) -> dict[str, Any]:
    return {"jobs": [str(job_id) for job_id in sorted(set(ids))]}
