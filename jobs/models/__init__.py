"""The tables. Imported in dependency order, so that no import order outside can make a circle."""

from __future__ import annotations

from jobs.models.action import OperatorAction
from jobs.models.attempt import Attempt
from jobs.models.cron import CronDefinition, Misfire, Overlap
from jobs.models.key import KeyLimit, UniqueKey
from jobs.models.limits import BucketScope, Hold, HoldScope, RateBucket, TenantQueueLimit
from jobs.models.outcome import Outcome
from jobs.models.process import Process, ProcessKind
from jobs.models.queue import Parked, Queue, QueueEntry, Waits
from jobs.models.rated import RatePer
from jobs.models.tenant import Tenant
from jobs.models.tick import CronRevision, CronRun, CronTick, TickOutcome
from jobs.models.timer import Timer

from jobs.models.job import Job  # isort: skip  # last: its manager knows all of the above

__all__ = [
    "Attempt",
    "BucketScope",
    "CronDefinition",
    "CronRevision",
    "CronRun",
    "CronTick",
    "Hold",
    "HoldScope",
    "Job",
    "KeyLimit",
    "Misfire",
    "OperatorAction",
    "Outcome",
    "Overlap",
    "Parked",
    "Process",
    "ProcessKind",
    "Queue",
    "QueueEntry",
    "RateBucket",
    "RatePer",
    "Tenant",
    "TenantQueueLimit",
    "TickOutcome",
    "Timer",
    "UniqueKey",
    "Waits",
]
