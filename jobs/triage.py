"""Triage: groups of errors are told apart into new, known, ignored and mended. A group is a fingerprint."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import connections, transaction
from django.db.models.functions import Now

from jobs import clock
from jobs.errors import InvalidValue, describe
from jobs.limiting import stored_time
from jobs.models.triage import Triage, TriageState
from jobs.slugs import name_of
from jobs.text import scrub, storable

NEW, BACK = "new", "back"
FIELDS = ("state", "until", "owner", "note")
_LOCK = 0x7472_6961


def mark(
    fingerprint: str,
    state: str,
    *,
    owner: str = "",
    note: str = "",
    until: datetime | None = None,
    by: str = "",
    seen: datetime | bool | None = True,
    using: str = "default",
) -> tuple[Triage | None, dict[str, Any]]:
    """Say of these errors that they are known, ignored or mended; "new" takes back what was said. `until`: an aware time
    from which on they are new again. `seen`: when what the caller looked at was said (None: nothing had been), to refuse
    an edit of what somebody else has changed since; True: whatever it is. Returns the row (None for new) and what was
    said before. InvalidValue names what is wrong."""
    try:
        name_of(fingerprint, 16)
    except ValueError:
        raise InvalidValue(
            "fingerprint", f"{describe(fingerprint)} is none: it has 1 to 16 characters"
        ) from None
    if state not in (NEW, *TriageState.values):
        raise InvalidValue("state", f"{describe(state)} is none of {NEW}, {', '.join(TriageState.values)}")
    if until is not None and stored_time("until", until) <= clock.now(using):
        raise InvalidValue("until", f"{until} is not still to come")
    with transaction.atomic(using):
        _lock(fingerprint, using)
        found = Triage.objects.using(using).filter(pk=fingerprint).first()
        if not isinstance(seen, bool) and seen != (found and found.at):
            raise InvalidValue("fingerprint", _changed(found))
        before = {name: getattr(found, name) for name in FIELDS} if found else {"state": NEW}
        if state == NEW:
            if found:
                found.delete()
            return None, before
        row = Triage(fingerprint, state, until, storable(owner, 150), storable(scrub(note), 500), by, Now())
        row.save(using=using, force_insert=found is None)
        row.refresh_from_db(using=using)
    return row, before


def standing(
    state: str | None, until: datetime | None, at: datetime | None, last: datetime, now: datetime
) -> str:
    """What a group counts as whose last failure was at `last`: new, known, ignored, mended, or back, when it failed
    again after it was said to be mended."""
    if state is None or at is None or (until is not None and until <= now):
        return NEW
    return BACK if state == TriageState.MENDED and last > at else str(state)


def _lock(fingerprint: str, using: str) -> None:
    """Until the end of the transaction: a row that is not there yet cannot be locked."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCK, fingerprint])


def _changed(found: Triage | None) -> str:
    if found is None:
        return "somebody has taken back meanwhile what was said of it: look again"
    return f"{found.by or 'somebody'} has said meanwhile that it is {found.state}: look again"
