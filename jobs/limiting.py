"""Set limits, rates and weights of a tenant, a queue, or a tenant in a queue. The rules are those of the models, so that
console, commands and code refuse the same values with the same words."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connections, models, transaction

from jobs import moments
from jobs.conf import MOST
from jobs.errors import ChangedSince, InvalidValue, UnknownTenant, describe
from jobs.models import Queue, Tenant, TenantQueueLimit
from jobs.slugs import slug_of

Limited = Tenant | Queue | TenantQueueLimit
FIELDS: dict[type[models.Model], tuple[str, ...]] = {
    Tenant: (
        "max_running", "weight", "rate", "rate_per", "burst", "temporary_max_running", "temporary_until",
        "noisy_exempt",
    ),
    Queue: ("max_running", "rate", "rate_per", "burst", "noisy_share"),
    TenantQueueLimit: ("max_running",),
}  # fmt: skip
LOCK_TIMEOUT = "5s"
"""An edit waits no longer for another operator, and claims never wait for it."""


def limit(
    changes: dict[str, Any], *, tenant: str | None = None, queue: str | None = None, using: str = "default"
) -> tuple[Limited, dict[str, Any]]:
    """Change limits of a tenant, a queue, or (both given) of the tenant in the queue. Returns the row, and what it had
    before. Whole numbers; 0: none may run; None: unlimited. Works within two seconds of the commit and ends nothing that
    runs. InvalidValue names the field; UnknownTenant."""
    if tenant is None and queue is None:
        raise InvalidValue("tenant", "name a tenant, a queue, or both")
    with transaction.atomic(using), connections[using].cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
        row = _row(tenant, queue, using)
        before = {}
        for field, value in changes.items():
            if field not in FIELDS[type(row)]:
                raise InvalidValue(
                    field, f"is nothing that is set of it; there are {', '.join(FIELDS[type(row)])}"
                )
            before[field] = getattr(row, field)
            setattr(row, field, _checked(row, field, value))
        if isinstance(row, TenantQueueLimit) and row.max_running is None:
            if row.pk is not None:
                row.delete()
            return row, before
        try:
            row.full_clean()
        except ValidationError as error:
            raise invalid(error) from None
        row.save(using=using)
    return row, before


def undo(
    before: dict[str, Any],
    after: dict[str, Any],
    *,
    tenant: str | None = None,
    queue: str | None = None,
    using: str = "default",
) -> tuple[Limited, dict[str, Any]]:
    """Set `before` again where `after` still stands; both as the audit keeps them. ChangedSince, and nothing is done,
    where it does not. Else as `limit`."""
    with transaction.atomic(using), connections[using].cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
        row = _row(tenant, queue, using)  # locked until the change is made
        told = [
            f"{field.replace('_', ' ')} is {_said(getattr(row, field))}, not {_said(left)}"
            for field, left in _read(row, after).items()
            if getattr(row, field) != left
        ]
        if told:
            raise ChangedSince(f"somebody has changed this since: {', '.join(told)}")
        return limit(_read(row, before), tenant=tenant, queue=queue, using=using)


def _read(row: Limited, kept: dict[str, Any]) -> dict[str, Any]:
    """What the audit keeps as text is a time again."""
    times = {field.name for field in row._meta.get_fields() if isinstance(field, models.DateTimeField)}
    return {
        name: datetime.fromisoformat(value) if name in times and isinstance(value, str) else value
        for name, value in kept.items()
        if name in FIELDS[type(row)]
    }


def _said(value: Any) -> str:
    return "empty" if value is None else str(value)


def warning_of(row: Limited) -> str | None:
    """What an operator should know of these limits; None: nothing."""
    stopped = [name.replace("_", " ") for name in ("max_running", "rate") if getattr(row, name, None) == 0]
    if not stopped:
        return None
    kind = str(row._meta.verbose_name)
    return f"{kind} {row}: {' and '.join(stopped)} is 0, so none of its jobs starts until that is changed."


def whole(field: str, value: Any, least: int) -> int:
    """A whole number from `least` to a million, or InvalidValue."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
        raise InvalidValue(field, f"{describe(value)} is no whole number from {least} to {MOST:,}")
    return value


def stored_time(field: str, value: Any) -> datetime:
    """An aware time that a table takes, or InvalidValue."""
    try:
        return moments.stored(value)
    except ValueError as error:
        raise InvalidValue(field, str(error)) from None


def invalid(error: ValidationError) -> InvalidValue:
    """What a form would say of the first field that is wrong."""
    field, messages = next(iter(error.message_dict.items()))
    return InvalidValue(field, " ".join(messages))


def _row(tenant: str | None, queue: str | None, using: str) -> Limited:
    owner = None if tenant is None else _tenant(tenant, using)
    if queue is None:
        assert owner is not None  # noqa: S101
        return owner
    try:
        slug_of(queue)
    except ValueError as error:
        raise InvalidValue("queue", str(error)) from None
    if owner is None:
        return Queue.objects.using(using).select_for_update().filter(name=queue).first() or Queue(name=queue)
    found = (
        TenantQueueLimit.objects.using(using)
        .select_for_update(of=("self",))
        .filter(tenant=owner, queue=queue)
    )
    return found.first() or TenantQueueLimit(tenant=owner, queue=queue, max_running=None)  # type: ignore[misc]


def _tenant(slug: str, using: str) -> Tenant:
    try:
        name = slug_of(slug)
    except ValueError as error:
        raise InvalidValue("tenant", str(error)) from None
    found = Tenant.objects.using(using).select_for_update().filter(slug=name, retired_at=None).first()
    if found is None:
        raise UnknownTenant(f"there is no tenant {name!r}")
    return found


def _checked(row: Limited, field: str, value: Any) -> Any:
    """Numbers as a form would take them, but no text, truth or fraction that would be rounded."""
    kind = row._meta.get_field(field)
    if value is None:
        if not kind.null and not isinstance(row, TenantQueueLimit):
            raise InvalidValue(field, "must not be empty")
        return None
    if isinstance(kind, models.DateTimeField):
        return stored_time(field, value)
    if isinstance(kind, models.PositiveIntegerField | models.PositiveSmallIntegerField):
        return whole(field, value, 0)
    if isinstance(kind, models.FloatField) and (
        isinstance(value, bool) or not isinstance(value, int | float)
    ):
        raise InvalidValue(field, f"{describe(value)} is not a number")
    if isinstance(kind, models.BooleanField) and not isinstance(value, bool):
        raise InvalidValue(field, f"{describe(value)} is neither true nor false")
    return value
