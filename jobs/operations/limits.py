"""How much one operation may do, by the permissions of who starts it."""

from __future__ import annotations

from typing import Any

CEILINGS = (("jobs.bulk_any", 2_000_000_000), ("jobs.bulk_many", 100_000), ("jobs.bulk_job", 1_000))
"""The first permission that somebody has decides."""
BULK = "jobs.bulk_job"
TYPED = 1_000
"""From so many jobs on, or when their number is not known, the number (or the verb) is typed to confirm."""
RATE = 1_000
"""Jobs a second by default."""
RATES = range(1, 10_001)
PROBE = 100
CHUNK = 500


def ceiling_of(user: Any) -> int:
    """How many jobs this user's operations may touch; 0: none."""
    return next((ceiling for permission, ceiling in CEILINGS if user.has_perm(permission)), 0)
