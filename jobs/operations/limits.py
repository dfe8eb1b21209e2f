"""How much one operation may do, by the permissions of who starts it."""

from __future__ import annotations

from typing import Any

from jobs.conf import conf
from jobs.models import Operation

CEILINGS = (("jobs.bulk_any", 2_000_000_000), ("jobs.bulk_many", 100_000), ("jobs.bulk_job", 1_000))
"""The first permission that somebody has decides."""
BULK = "jobs.bulk_job"
TYPED = 1_000
"""From so many jobs on, or when their number is not known, the number (or the verb) is typed to confirm."""
LONGEST = 1000
"""Characters of an operation's query: names are spelled out in it, and windows are absolute."""
APPROVE = "jobs.approve_operation"
RATE = 1_000
"""Jobs a second by default."""
RATES = range(1, 10_001)
PROBE = 100
CHUNK = 500


def unapproved(operation: Operation) -> int | None:
    """How many jobs it may change before a second person has approved it; None: that is not asked for. To take back needs
    nobody."""
    return None if operation.approver_name or operation.undoes_id else conf().approve_above


def must_ask(number: int | None) -> bool:
    """Whether an operation on so many jobs (None: not known) waits for a second person."""
    most = conf().approve_above
    return most is not None and (number is None or number > most)


def ceiling_of(user: Any) -> int:
    """How many jobs this user's operations may touch; 0: none."""
    return next((ceiling for permission, ceiling in CEILINGS if user.has_perm(permission)), 0)
