"""Pause and resume: a hold keeps the jobs of its target from starting; what runs goes on.

A target is everything, a tenant, a queue, a job type or a group. Several may hold the same one: it goes on when the last
of them has ended.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connections, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from jobs import clock, notify
from jobs.errors import InvalidValue, UnknownTenant, describe
from jobs.limiting import invalid, stored_time, whole
from jobs.models import Hold, HoldScope, Tenant
from jobs.slugs import slug_of
from jobs.text import storable


def hold(
    scope: str,
    key: str = "",
    *,
    reason: str = "",
    by: str = "",
    until: datetime | None = None,
    using: str = "default",
) -> Hold:
    """Pause from now on. `scope`: all, tenant, queue, type or group, and `key` its name (none for all). `until`: an
    aware time at which it ends by itself. In the caller's transaction; workers obey within two seconds of its commit.
    InvalidValue names what is wrong; UnknownTenant."""
    made = Hold(
        scope=scope, key=_key(scope, key), reason=_text("reason", reason), by=_text("by", by), until=until
    )
    if until is not None:
        _require_time(until, using)
    try:
        made.full_clean()
    except ValidationError as error:
        raise invalid(error) from None
    if (
        made.scope == HoldScope.TENANT
        and not Tenant.objects.using(using).filter(slug=made.key, retired_at=None).exists()
    ):
        raise UnknownTenant(f"there is no tenant {made.key!r}")
    made.save(using=using, force_insert=True)
    return made


def lift(hold: Hold | int, *, rate: int | None = None, using: str = "default") -> Hold:
    """Resume: the hold ends now. `rate`: jobs a second at which what has waited starts; None: at full speed. In the
    caller's transaction. InvalidValue for a rate that is none, and when it has ended already."""
    if rate is not None:
        rate = whole("rate", rate, 1)
    pk: Any = hold.pk if isinstance(hold, Hold) else hold
    if isinstance(pk, bool) or not isinstance(pk, int) or abs(pk) >= 2**63:
        raise InvalidValue("hold", f"{describe(pk)} is no hold, nor the number of one")
    with transaction.atomic(using), connections[using].cursor() as cursor:
        # Nothing waits in the entries for the end of another hold than one of a type or group, or for a rate.
        cursor.execute(
            "UPDATE jobs_hold SET until = greatest(since, clock_timestamp()), drain = %s, "
            "drained_at = CASE WHEN %s AND scope IN ('all', 'tenant', 'queue') THEN clock_timestamp() END "
            "WHERE id = %s AND (until IS NULL OR until > clock_timestamp()) RETURNING id",
            [rate, rate is None, pk],
        )
        found = cursor.fetchone()
    lifted = Hold.objects.using(using).filter(pk=pk).first()
    if lifted is None:
        raise InvalidValue("hold", f"there is no hold {describe(pk)}")
    if found is None:
        raise InvalidValue("hold", f"{lifted} was resumed at {lifted.until:%Y-%m-%d %H:%M:%S %Z}")
    notify.after_commit(using)
    return lifted


def standing(using: str = "default") -> QuerySet[Hold]:
    """The holds that are in force, the newest first."""
    lasts = Q(until=None) | Q(until__gt=Now())
    return Hold.objects.using(using).filter(lasts, since__lte=Now(), drained_at=None)


def _key(scope: Any, key: Any) -> str:
    if scope not in HoldScope.values:
        raise InvalidValue("scope", f"{describe(scope)} is none of {', '.join(HoldScope.values)}")
    if scope == HoldScope.ALL:
        if key:
            raise InvalidValue("key", f"is {describe(key)}, but everything has no name")
        return ""
    try:
        slug = slug_of(key)
    except ValueError as error:
        raise InvalidValue("key", f"names no {scope}: {error}") from None
    return slug if scope == HoldScope.TENANT else str(key)


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str) or storable(value, len(value) * 4) != value:
        raise InvalidValue(field, f"{describe(value)} is not text that can be stored")
    return value.strip()


def _require_time(until: Any, using: str) -> None:
    if stored_time("until", until) <= clock.now(using):
        raise InvalidValue("until", f"{until} is not in the future")
