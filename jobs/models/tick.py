"""`CronTick`: one expected firing and what became of it. `CronRun`: a run that others of its definition wait for.
`CronRevision`: a rule that was in force before."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from jobs.fields import JobIdField


class TickOutcome(models.TextChoices):
    FIRED = "fired", "fired on time"
    LATE = "late", "fired late"
    MERGED = "merged", "merged into a later run"
    WAITING = "waiting", "waits for an earlier run to end"
    SKIPPED = "skipped", "skipped: overlap, pause or misfire policy"
    MISSED = "missed", "older than the catch-up window, over its limit or overtaken by an edit"
    REPLACED = "replaced", "the definition was changed before it came due"
    BACKFILLED = "backfilled", "run by a backfill"
    MANUAL = "manual", "run by hand"


class CronTick(models.Model):
    """The proof that nothing was silently skipped: one row (or one range row) per expected slot.

    Partitioned by `slot`, dropped by age alone; it names its job by id only, and a pruned job is a legal answer. Of a
    skipped slot, `job_id` is the run that stood in the way. `last_slot` and `slots` make it a range; 1,000 slots say
    "at least". `id` is derived from definition, revision and slot, so two tickers collide. Backfilled and manual rows
    come on top: they stand for runs that somebody asked for.
    """

    id = JobIdField(primary_key=True, due_field="slot")
    slot = models.DateTimeField()
    definition_id = models.BigIntegerField()
    revision = models.IntegerField()
    outcome = models.CharField(max_length=10, choices=TickOutcome.choices)
    reason = models.CharField(max_length=200, default="")
    last_slot = models.DateTimeField(null=True)
    slots = models.IntegerField(default=1)
    job_id = models.UUIDField(null=True)
    written_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["definition_id", "slot"], name="jobs_crontick_definition"),
        ]

    def __str__(self) -> str:
        return f"{self.definition_id} at {self.slot}: {self.outcome}"


class CronRun(models.Model):
    """Under an overlap policy other than allow: a run that is not known to have ended, or (no job yet) a start that
    waits for it. `tick_id` is the row of the ledger."""

    tick_id = models.UUIDField(primary_key=True)
    definition_id = models.BigIntegerField(db_index=True)
    revision = models.IntegerField()
    slot = models.DateTimeField()
    job_id = models.UUIDField(null=True)
    asked = models.BooleanField(default=False, help_text="Somebody asked for it: an edit does not drop it.")

    def __str__(self) -> str:
        return f"{self.definition_id} at {self.slot}: {self.job_id or 'waits'}"


class CronRevision(models.Model):
    """A rule as it was until an edit, a pause, a resumption or a deletion; written by the trigger alone.

    It was in force in (since, until]; slots in (cursor, until] had not been considered. The next ticker tells their
    fate in one range row, and then it is `settled`. Kept for the retention, for `checkcron`.
    """

    definition_id = models.BigIntegerField()
    revision = models.IntegerField()
    expression = models.CharField(max_length=512)
    timezone = models.CharField(max_length=64)
    dst = models.CharField(max_length=7)
    every = models.DurationField(null=True)
    anchor_at = models.DateTimeField(null=True)
    run_at = models.DateTimeField(null=True)
    start_at = models.DateTimeField(null=True)
    end_at = models.DateTimeField(null=True)
    enabled = models.BooleanField()
    broken = models.CharField(max_length=500, default="")
    since = models.DateTimeField()
    cursor = models.DateTimeField()
    until = models.DateTimeField()
    settled = models.BooleanField(default=False)

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["id"], condition=Q(settled=False), name="jobs_cronrevision_open"),
            models.Index(fields=["until"], name="jobs_cronrevision_until"),
        ]

    def __str__(self) -> str:
        return f"{self.definition_id} until {self.until}"
