"""`QueueEntry`: the small hot row of a dispatched, unfinished job. `Queue`: the limit of one named stream of work."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from jobs.conf import MOST
from jobs.fields import JobIdField
from jobs.links import JobLink
from jobs.models.rated import Rated, rate_checks
from jobs.states import JobState


class Queue(Rated):
    """Optional: a queue exists by being named; a row here gives it limits."""

    name = models.CharField(max_length=100, unique=True)
    max_running = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MaxValueValidator(MOST)],
        help_text="Most jobs at once; 0: none may run; empty: unlimited.",
    )
    noisy_share = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0.01), MaxValueValidator(1)],
        help_text="Share of a worker's threads, 0.01 to 1, that one tenant may hold while others wait; empty: as in "
        "the settings; 1: all of them.",
    )

    class Meta:
        ordering: ClassVar[list[str]] = ["name"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(max_running__gte=0, max_running__lte=MOST), name="jobs_queue_max_running"
            ),
            models.CheckConstraint(
                condition=Q(noisy_share__gte=0.01, noisy_share__lte=1), name="jobs_queue_noisy_share"
            ),
            *rate_checks("jobs_queue"),
        ]

    def __str__(self) -> str:
        return self.name


class Parked(models.TextChoices):
    """Why an entry is out of the ready index although its time has come; each reason is lifted by its own verb."""

    TYPE = "type", "no live worker knows its type"
    KEY = "key", "others with its concurrency key run"
    HOLD = "hold", "its type or group is held"


class Waits(models.TextChoices):
    """Why an entry waits again after an attempt; null: it has not run yet, or was released."""

    RETRY = "retry"
    SNOOZE = "snooze"
    RESCHEDULE = "reschedule"


class QueueEntry(models.Model):
    """Where a dispatched job waits and is leased. `lease_token` and `process_id` are set together; an entry is
    orphaned when its process row is missing or expired: the lease itself belongs to the process."""

    job_id = JobIdField(primary_key=True)
    due_at = models.DateTimeField()
    job = JobLink(related_name="entry")
    run_at = models.DateTimeField()
    tenant_id = models.BigIntegerField()
    queue = models.CharField(max_length=100)
    job_type = models.CharField(max_length=100)
    priority = models.SmallIntegerField()
    attempt = models.IntegerField(default=0)
    max_attempts = models.IntegerField()
    crashes = models.IntegerField(default=0)
    enqueued_at = models.DateTimeField(db_default=Now())
    process_id = models.BigIntegerField(null=True)
    lease_token = models.UUIDField(null=True)
    claim_no = models.BigIntegerField(null=True)
    """One number per claim, taken under the locks of its limits, so that it rises: a count of leased entries starts at
    the oldest one seen alive and never walks dead rows."""
    claimed_at = models.DateTimeField(null=True)
    cancel_requested = models.BooleanField(default=False)
    parked = models.CharField(max_length=4, null=True, choices=Parked.choices)
    waits = models.CharField(max_length=10, null=True, choices=Waits.choices)
    group = models.CharField(max_length=100, null=True)
    concurrency_key = models.CharField(max_length=200, null=True)
    action_id = models.BigIntegerField(null=True)

    class Meta:
        verbose_name_plural = "queue entries"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(lease_token__isnull=True, process_id__isnull=True)
                | Q(lease_token__isnull=False, process_id__isnull=False),
                name="jobs_queueentry_leased",
            ),
            # A claim hops over the priorities of one tenant within its bound.
            models.CheckConstraint(
                condition=Q(priority__gte=-100, priority__lte=100), name="jobs_queueentry_priority"
            ),
            # Whoever waits for a key has one, or nobody would ever admit it.
            models.CheckConstraint(
                condition=~Q(parked="key") | Q(concurrency_key__isnull=False), name="jobs_queueentry_keyed"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                F("queue"),
                F("tenant_id"),
                F("priority").desc(),
                F("run_at"),
                F("job_id"),
                condition=Q(lease_token__isnull=True, parked__isnull=True),
                name="jobs_queueentry_ready",
            ),
            # Two spellings of "leased" and of "not leased" on purpose: statistics from a moment when the queue was empty
            # make all indexes look free, and the planner then picks a tenant's entries through the queue's index, or
            # counts a tenant through the processes'. A predicate that the query does not say rules an index out.
            models.Index(
                fields=["queue", "run_at"],
                condition=Q(process_id__isnull=True, parked__isnull=True),
                name="jobs_queueentry_next",
            ),
            models.Index(
                fields=["tenant_id", "claim_no"],
                condition=Q(lease_token__isnull=False),
                name="jobs_queueentry_tenant",
            ),
            models.Index(
                fields=["queue", "claim_no"],
                condition=Q(process_id__isnull=False),
                name="jobs_queueentry_queue",
            ),
            models.Index(fields=["job_type"], condition=Q(parked="type"), name="jobs_queueentry_parked"),
            models.Index(
                F("priority").desc(),
                F("run_at"),
                F("job_id"),
                condition=Q(parked="hold"),
                name="jobs_queueentry_held",
            ),
            # Concurrency keys: who has a place, who waits for one in which order, and whose time comes next. Jobs without
            # a key are in none of them. Spelled apart as above.
            models.Index(
                fields=["tenant_id", "concurrency_key"],
                condition=Q(concurrency_key__isnull=False, parked__isnull=True),
                name="jobs_queueentry_key",
            ),
            models.Index(
                F("tenant_id"),
                F("concurrency_key"),
                F("priority").desc(),
                F("run_at"),
                F("job_id"),
                condition=Q(parked="key", lease_token__isnull=True),
                name="jobs_queueentry_keyline",
            ),
            models.Index(
                fields=["run_at"],
                condition=Q(parked="key", process_id__isnull=True),
                name="jobs_queueentry_keydue",
            ),
            models.Index(
                fields=["queue"],
                condition=Q(crashes__gte=2, lease_token__isnull=True),
                name="jobs_queueentry_suspect",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job_type} {self.job_id}"

    def state(self, now: object) -> JobState:
        """What this entry says of its job at `now` (an aware datetime)."""
        if self.lease_token is not None:
            return JobState.RUNNING
        if self.run_at <= now:  # type: ignore[operator]
            return JobState.QUEUED
        return JobState.RETRYABLE if self.waits == Waits.RETRY else JobState.SCHEDULED
