"""What a person does to jobs, always audited: one `OperatorAction` for each command, also for a refused one.

Admin, console and commands go through here, so that the permission is asked where the deed is done.
"""

from __future__ import annotations

import getpass
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db import connections, transaction

from jobs import holds, limiting, verbs
from jobs.models import Hold, OperatorAction
from jobs.report import Report
from jobs.text import scrub, storable

LIMIT = 100
"""Jobs one command may name; more of them need a bulk operation."""
REASON_BYTES = 500


class Shell:
    """Who runs a command on a host: may do all, and is recorded by the name of the account."""

    is_authenticated = True

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


COMMANDS = {
    "retry": Command("jobs.retry_job", "retried", verbs.retry),
    "cancel": Command("jobs.cancel_job", "cancelled", verbs.cancel),
}
REVEAL = "jobs.reveal_payload"


def act(
    user: User, verb: str, ids: Sequence[UUID], reason: str = "", using: str = "default"
) -> tuple[OperatorAction, Report]:
    """Do `verb` to these jobs, up to LIMIT of them, and record it in the same transaction. Denied, and whatever the
    verb raises, are recorded as well; inside a caller's transaction that record shares its fate."""
    if not 0 < len(set(ids)) <= LIMIT:
        raise ValueError(f"a command names 1 to {LIMIT} jobs, not {len(set(ids))}")
    command, target = COMMANDS[verb], _jobs(ids)
    require(user, command.permission, verb, target, reason, using)
    try:
        with transaction.atomic(using):
            action_id = _next_id(using)
            report = command.run(ids, using=using, action_id=action_id)
            if report.requested:
                target["asked_to_stop"] = report.requested
            action = record(
                user,
                verb,
                target,
                reason,
                using,
                pk=action_id,
                changed=report.changed,
                skipped=report.skipped,
            )
    except Exception as error:
        record(
            user, verb, target, reason, using, skipped=Counter({f"error: {type(error).__name__}": len(ids)})
        )
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
) -> limiting.Limited:
    """`limiting.limit` by this user, recorded with before and after."""
    names = {name: value for name, value in (("tenant", tenant), ("queue", queue)) if value is not None}
    require(
        user,
        "jobs.change_queue" if tenant is None else "jobs.change_tenant",
        "limit",
        dict(names),
        reason,
        using,
    )
    with transaction.atomic(using):
        row, before = limiting.limit(changes, tenant=tenant, queue=queue, using=using)
        record(
            user,
            "limit",
            {**names, "before": _plain(before), "after": _plain(changes)},
            reason,
            using,
            changed=1,
        )
    return row


def reveal(user: User, job_id: UUID, reason: str, using: str = "default") -> OperatorAction:
    """Record that `user` looks at the payload of this job."""
    target = _jobs([job_id])
    require(user, REVEAL, "reveal", target, reason, using)
    return record(user, "reveal", target, reason, using)


def require(
    user: User, permission: str, verb: str, target: dict[str, Any], reason: str = "", using: str = "default"
) -> None:
    """Denied, after recording the attempt, unless `user` has the permission."""
    if not user.has_perm(permission):  # type: ignore[union-attr]
        record(user, verb, target, reason, using, skipped=Counter(denied=len(target.get("jobs", [target]))))
        raise Denied(permission)


def record(
    user: User,
    verb: str,
    target: dict[str, Any],
    reason: str = "",
    using: str = "default",
    *,
    pk: int | None = None,
    changed: int = 0,
    skipped: Counter[str] | None = None,
) -> OperatorAction:
    """Write the audit row of one command. It is inserted once and never touched again."""
    action = OperatorAction(
        pk=pk,
        verb=verb,
        actor_id=user.pk if isinstance(user, AbstractBaseUser) and user._state.db in (None, using) else None,
        actor_name=user.get_username()[:150],
        target=target,
        reason=storable(scrub(reason.strip()), REASON_BYTES),
        matched=len(target.get("jobs", [target])),
        changed=changed,
        skipped=dict(skipped or {}),
    )
    action.save(using=using, force_insert=True)
    return action


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, int | float | str | None) else str(value)
        for name, value in values.items()
    }


def _jobs(ids: Sequence[UUID]) -> dict[str, Any]:
    return {"jobs": [str(job_id) for job_id in sorted(set(ids))]}


def _next_id(using: str) -> int:
    """The id of the action before its row: the verb writes it beside what it changes."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence('jobs_operatoraction', 'id'))")
        return int(cursor.fetchone()[0])
