"""`CronDefinition`: a stored recurring rule. `CronTick`: one expected firing of it and what became of it."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from jobs.cron import Cron
from jobs.errors import CronError
from jobs.fields import JobIdField
from jobs.models.tenant import Tenant


class Misfire(models.TextChoices):
    """What to do with slots that are later than `misfire_grace` (CRON.md 6; Quartz's names in other words)."""

    RUN_ONCE = "run_once", "one run, for the latest missed slot"
    RUN_ALL = "run_all", "one run per missed slot, oldest first, up to the limit"
    SKIP = "skip", "none; wait for the next slot"


class Overlap(models.TextChoices):
    """What to do when a slot comes while an earlier run is still unfinished."""

    ALLOW_ALL = "allow_all", "start at once"


class CronDefinition(models.Model):
    """A trigger raises `revision` and nulls `next_slot` whenever a rule column changes, whoever writes it."""

    name = models.CharField(max_length=200)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+")
    expression = models.CharField(max_length=512)
    timezone = models.CharField(max_length=64, default="UTC")
    dst = models.CharField(
        max_length=7, default="cron", choices=[("cron", "cron"), ("skip", "skip"), ("literal", "literal")]
    )
    job_type = models.CharField(max_length=100)
    payload = models.JSONField(default=dict, blank=True)
    queue = models.CharField(max_length=100, null=True, blank=True)
    priority = models.SmallIntegerField(default=0)
    max_attempts = models.PositiveIntegerField(null=True, blank=True)
    enabled = models.BooleanField(default=True)
    start_at = models.DateTimeField(null=True, blank=True)
    end_at = models.DateTimeField(null=True, blank=True)
    misfire = models.CharField(max_length=8, choices=Misfire.choices, default=Misfire.RUN_ONCE)
    misfire_grace = models.DurationField(default=timedelta(seconds=60))
    catchup_window = models.DurationField(default=timedelta(hours=24))
    catchup_limit = models.PositiveIntegerField(default=100)
    overlap = models.CharField(max_length=11, choices=Overlap.choices, default=Overlap.ALLOW_ALL)
    source = models.CharField(max_length=100, default="", blank=True, help_text="Where code declared it.")
    declared = models.JSONField(
        null=True,
        editable=False,
        help_text="What code declared last: an edit here stays until the code changes.",
    )
    next_slot = models.DateTimeField(null=True, editable=False)
    last_slot = models.DateTimeField(
        null=True, editable=False, help_text="The cursor: the last slot considered; never moves backwards."
    )
    revision = models.IntegerField(default=1, editable=False)
    broken = models.CharField(max_length=500, default="", blank=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "name"], name="jobs_crondefinition_name"),
            models.CheckConstraint(
                condition=Q(end_at__isnull=True) | Q(start_at__isnull=True) | Q(end_at__gt=F("start_at")),
                name="jobs_crondefinition_window",
            ),
            models.CheckConstraint(
                condition=Q(catchup_limit__gte=1, catchup_limit__lte=1000), name="jobs_crondefinition_limit"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                F("next_slot").asc(nulls_first=True),
                condition=Q(enabled=True, broken=""),
                name="jobs_crondefinition_due",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def rule(self) -> Cron:
        """The parsed rule; CronError when expression, zone or dst is wrong."""
        return Cron(self.expression, tz=self.timezone, dst=self.dst)

    def clean(self) -> None:
        try:
            self.rule()
        except CronError as error:
            name = {"tz": "timezone", "dst": "dst"}.get(error.field, "expression")
            raise ValidationError({name: error.message}) from error


class TickOutcome(models.TextChoices):
    FIRED = "fired", "fired on time"
    LATE = "late", "fired late"
    MERGED = "merged", "merged into a later run"
    SKIPPED = "skipped", "skipped"
    MISSED = "missed", "older than the catch-up window or over its limit"
    REPLACED = "replaced", "the definition was changed before it came due"


class CronTick(models.Model):
    """The proof that nothing was silently skipped: one row (or one range row) per expected slot.

    Partitioned by `slot`, dropped by age alone; it names its job by id only, and a pruned job is a legal answer.
    `last_slot` and `slots` make it a range. `id` is derived from
    definition, revision and slot, so two tickers collide.
    """

    id = JobIdField(primary_key=True, due_field="slot")
    slot = models.DateTimeField()
    definition_id = models.BigIntegerField()
    revision = models.IntegerField()
    outcome = models.CharField(max_length=8, choices=TickOutcome.choices)
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
