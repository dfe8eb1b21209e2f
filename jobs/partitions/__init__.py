"""Days of the partitioned tables: the only DDL at run time."""

from __future__ import annotations

from jobs.conf import MAX_DAYS
from jobs.partitions.catalog import KEYS, PARENTS, DayLeaves, bounds, day_of, maintenance, read_days
from jobs.partitions.ensure import ensure, ensure_days, known, require, require_days
from jobs.partitions.expire import Expired, expire
from jobs.partitions.plan import Plan, Step, plan, ready, wanted_days
from jobs.partitions.seal import seal

__all__ = [
    "KEYS",
    "MAX_DAYS",
    "PARENTS",
    "DayLeaves",
    "Expired",
    "Plan",
    "Step",
    "bounds",
    "day_of",
    "ensure",
    "ensure_days",
    "expire",
    "known",
    "maintenance",
    "plan",
    "read_days",
    "ready",
    "require",
    "require_days",
    "seal",
    "wanted_days",
]
