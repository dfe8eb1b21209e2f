"""`CronDefinition`: a stored recurring rule, and what an operator does to it. What it did is in `jobs.models.tick`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django.core.exceptions import ValidationError
from django.db import models, router
from django.db.models import F, Q
from django.db.models.functions import Now

from jobs import clock
from jobs.cron import Recurrence, recurrence
from jobs.cron.policy import LONGEST_DELAY, LONGEST_NOTE
from jobs.errors import CronError
from jobs.models.tenant import Tenant
from jobs.text import storable

if TYPE_CHECKING:
    from uuid import UUID

    from jobs.backfill import Backfill

FIELDS = {"tz": "timezone"}
"""Where a rule's part has another name in the table."""
NO_TIME = timedelta()
AT_ONCE = datetime(1970, 1, 1, tzinfo=UTC)
"""When a ticker looks at a definition that is new or was changed."""


class Misfire(models.TextChoices):
    """What to do with slots that are later than `misfire_grace` (CRON.md 6; Quartz's names in other words)."""

    RUN_ONCE = "run_once", "one run, for the latest missed slot"
    RUN_ALL = "run_all", "one run per missed slot, oldest first, up to the limit"
    SKIP = "skip", "none; wait for the next slot"


class Overlap(models.TextChoices):
    """What to do when a slot comes while an earlier run is still unfinished; judged at the slot."""

    ALLOW_ALL = "allow_all", "start at once"
    SKIP = "skip", "skip the slot"
    BUFFER_ONE = "buffer_one", "keep one start waiting, the first"
    BUFFER_ALL = "buffer_all", "keep all starts waiting, in order, up to 100"
    CANCEL_OTHER = "cancel_other", "ask the earlier run to stop; start when it has ended"


class CronQuerySet(models.QuerySet["CronDefinition"]):
    """`create` and `bulk_create` refuse what could not fire, with the field and the reason."""

    def bulk_create(self, objs: Any, *args: Any, **kwargs: Any) -> list[CronDefinition]:
        """CronError or InvalidJob for the first wrong one; then nothing is written."""
        made, self._for_write = list(objs), True
        for definition in made:
            definition.check_all(self.db)
        return super().bulk_create(made, *args, **kwargs)


CronManager = models.Manager.from_queryset(CronQuerySet)


class CronDefinition(models.Model):
    """Exactly one of `expression`, `every` and `run_at` says when.

    A trigger raises `revision` whenever a rule column changes, whoever writes it, keeps the old rule as a
    `CronRevision` and withdraws what it had written ahead.
    """

    name = models.CharField(max_length=200)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+")
    expression = models.CharField(max_length=512, default="", blank=True, db_default="")
    timezone = models.CharField(max_length=64, default="UTC")
    dst = models.CharField(
        max_length=7, default="cron", choices=[("cron", "cron"), ("skip", "skip"), ("literal", "literal")]
    )
    every = models.DurationField(null=True, blank=True)
    anchor_at = models.DateTimeField(null=True, blank=True)
    run_at = models.DateTimeField(null=True, blank=True)
    job_type = models.CharField(max_length=100)
    payload = models.JSONField(default=dict, blank=True)
    queue = models.CharField(max_length=100, null=True, blank=True)
    priority = models.SmallIntegerField(default=0)
    max_attempts = models.PositiveIntegerField(null=True, blank=True)
    enabled = models.BooleanField(default=True)
    note = models.CharField(max_length=LONGEST_NOTE, default="", blank=True, db_default="")
    start_at = models.DateTimeField(null=True, blank=True)
    end_at = models.DateTimeField(null=True, blank=True)
    max_runs = models.PositiveIntegerField(null=True, blank=True)
    jitter = models.DurationField(default=NO_TIME, db_default=NO_TIME)
    spread = models.DurationField(default=NO_TIME, db_default=NO_TIME)
    misfire = models.CharField(max_length=8, choices=Misfire.choices, default=Misfire.RUN_ONCE)
    misfire_grace = models.DurationField(default=timedelta(seconds=60))
    catchup_window = models.DurationField(default=timedelta(hours=24))
    catchup_limit = models.PositiveIntegerField(default=100)
    overlap = models.CharField(max_length=12, choices=Overlap.choices, default=Overlap.ALLOW_ALL)
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
    look_at = models.DateTimeField(
        null=True,
        editable=False,
        db_default=AT_ONCE,
        help_text="When a ticker looks at it next; null: never.",
    )
    runs = models.IntegerField(default=0, db_default=0, editable=False)
    revision = models.IntegerField(default=1, editable=False)
    revised_at = models.DateTimeField(
        db_default=Now(), editable=False, help_text="The present rule counts from here."
    )
    tz_version = models.CharField(max_length=20, default="", db_default="", editable=False)
    broken = models.CharField(max_length=500, default="", blank=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects: ClassVar[models.Manager[CronDefinition]] = CronManager()

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
            models.CheckConstraint(
                condition=(~Q(expression="") & Q(every__isnull=True, run_at__isnull=True))
                | Q(expression="", every__isnull=False, run_at__isnull=True)
                | Q(expression="", every__isnull=True, run_at__isnull=False),
                name="jobs_crondefinition_rule",
            ),
            models.CheckConstraint(
                condition=Q(jitter__gte=NO_TIME, jitter__lte=LONGEST_DELAY)
                & Q(spread__gte=NO_TIME, spread__lte=LONGEST_DELAY),
                name="jobs_crondefinition_delay",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["look_at"], condition=Q(enabled=True, broken=""), name="jobs_crondefinition_due"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """CronError or InvalidJob for what clean() refuses. Fields that are saved alone are not looked at."""
        if kwargs.get("update_fields") is None:
            self.check_all(kwargs.get("using"))
        super().save(*args, **kwargs)

    @property
    def alias(self) -> str:
        """The database it is written to: a router may read it elsewhere."""
        return router.db_for_write(CronDefinition, instance=self)

    @property
    def when(self) -> str:
        """The rule in one line."""
        if self.every is not None:
            return f"every {self.every}"
        return f"once at {self.run_at:%Y-%m-%d %H:%M:%S%z}" if self.run_at else self.expression

    def rule(self) -> Recurrence:
        """The parsed rule; CronError when expression, zone, dst, interval or moment is wrong."""
        anchor: Any = (
            self.anchor_at or self.start_at or self.created_at
        )  # the last is unknown before the insert
        return recurrence(
            expression=self.expression,
            tz=self.timezone,
            dst=self.dst,
            every=self.every,
            anchor=anchor if isinstance(anchor, datetime) else None,
            run_at=self.run_at,
        )

    def check_all(self, using: str | None = None) -> None:
        """CronError or InvalidJob, with field and reason, for what could never fire as asked. `using`: the database whose
        time counts."""
        from jobs.defining import check_job, check_rule

        self._fill()
        now = clock.now(using or self.alias)
        check_rule(self, now)
        if self._state.adding:
            check_job(self, now)

    def _fill(self) -> None:
        """A form gives None for a field that was emptied."""
        if self.payload is None:
            self.payload = {}

    def clean(self) -> None:
        from jobs.defining import check_rule

        self._fill()
        try:
            check_rule(self, clock.now(self.alias))
        except CronError as error:
            known = {field.name for field in self._meta.fields}
            name = FIELDS.get(error.field, error.field)
            raise ValidationError({name if name in known else "expression": error.message}) from error

    def pause(self, note: str = "") -> bool:
        """Fire nothing until resume(); what was written ahead is withdrawn. False when it is paused already."""
        return self._set_enabled(False, note)

    def resume(self) -> bool:
        """Fire from now on. The slots of the pause are one row of the ledger and never run. False when it is not
        paused."""
        return self._set_enabled(True, "")

    def _set_enabled(self, enabled: bool, note: str) -> bool:
        found = CronDefinition.objects.using(self.alias).filter(pk=self.pk, enabled=not enabled)
        changed = bool(found.update(enabled=enabled, note=storable(note, 4 * LONGEST_NOTE)[:LONGEST_NOTE]))
        self.refresh_from_db(using=self.alias)
        return changed

    def run_now(self) -> UUID:
        """One run now, whatever the rule, the pause or the overlap policy says; returns the job's id."""
        from jobs.backfill import run_now

        return run_now(self)

    def backfill(self, start: datetime, end: datetime, **options: Any) -> Backfill:
        """Run the slots in [start, end] that have not run yet: see `jobs.backfill.backfill`."""
        from jobs.backfill import backfill

        return backfill(self, start, end, **options)
