"""The tables. Imported in dependency order, so that no import order outside can make a circle."""

from __future__ import annotations

from jobs.models.action import ActionResult, OperatorAction
from jobs.models.attempt import Attempt
from jobs.models.cron import CronDefinition, Misfire, Overlap
from jobs.models.key import KeyLimit, UniqueKey
from jobs.models.limits import BucketScope, Hold, HoldScope, RateBucket, TenantQueueLimit
from jobs.models.member import Preference, SavedView, TenantMember
from jobs.models.operation import Operation, OperationChunk, OperationState
from jobs.models.outcome import Outcome
from jobs.models.process import Process, ProcessKind
from jobs.models.queue import Parked, Queue, QueueEntry, Waits
from jobs.models.rated import RatePer
from jobs.models.rollup import Backlog, Forecast, Kind, Rollup, RollupProgress, Step
from jobs.models.tenant import Tenant
from jobs.models.tick import CronRevision, CronRun, CronTick, TickOutcome
from jobs.models.timer import Timer
from jobs.models.triage import Triage, TriageState

from jobs.models.job import Job  # isort: skip  # last: its manager knows all of the above

__all__ = [
    "ActionResult",
    "Attempt",
    "Backlog",
    "BucketScope",
    "CronDefinition",
    "CronRevision",
    "CronRun",
    "CronTick",
    "Forecast",
    "Hold",
    "HoldScope",
    "Job",
    "KeyLimit",
    "Kind",
    "Misfire",
    "Operation",
    "OperationChunk",
    "OperationState",
    "OperatorAction",
    "Outcome",
    "Overlap",
    "Parked",
    "Preference",
    "Process",
    "ProcessKind",
    "Queue",
    "QueueEntry",
    "RateBucket",
    "RatePer",
    "Rollup",
    "RollupProgress",
    "SavedView",
    "Step",
    "Tenant",
    "TenantMember",
    "TenantQueueLimit",
    "TickOutcome",
    "Timer",
    "Triage",
    "TriageState",
    "UniqueKey",
    "Waits",
]
