"""What tenants and queues may have: most at once, and how often one may start."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from jobs.conf import MOST
from jobs.models.rated import NONE_MAY_RUN
from jobs.models.tenant import Tenant


class TenantQueueLimit(models.Model):
    """How many of one tenant's jobs may run at once in one queue; the tenant's and the queue's own limits hold beside
    it."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="queue_limits")
    queue = models.CharField(max_length=100)
    max_running = models.PositiveIntegerField(
        validators=[MaxValueValidator(MOST)], help_text=f"Most jobs at once; {NONE_MAY_RUN}"
    )

    class Meta:
        ordering: ClassVar[list[str]] = ["queue", "tenant_id"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["queue", "tenant"], name="jobs_tenantqueuelimit_once"),
            models.CheckConstraint(
                condition=Q(max_running__gte=0, max_running__lte=MOST),
                name="jobs_tenantqueuelimit_max_running",
            ),
            models.CheckConstraint(condition=~Q(queue=""), name="jobs_tenantqueuelimit_queue"),
        ]

    def __str__(self) -> str:
        return f"{self.tenant} in {self.queue}: {self.max_running}"


class BucketScope(models.TextChoices):
    """Whose bucket it is; `key` names it: a tenant's id, a queue's name, a hold's id while it drains."""

    TENANT = "tenant"
    QUEUE = "queue"
    HOLD = "hold"


class RateBucket(models.Model):
    """The starts that a rated owner has saved up: `tokens` at `refilled_at`, more by now. Not in the owner's row, which
    everybody reads; written once a claim, under the owner's lock. Absent: full."""

    scope = models.CharField(max_length=6, choices=BucketScope.choices)
    key = models.CharField(max_length=100)
    tokens = models.FloatField()
    refilled_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["scope", "key"], name="jobs_ratebucket_once"),
            models.CheckConstraint(condition=Q(scope__in=BucketScope.values), name="jobs_ratebucket_scope"),
            models.CheckConstraint(
                condition=Q(tokens__gte=0, tokens__lte=MOST), name="jobs_ratebucket_tokens"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.key}: {self.tokens:g}"


class HoldScope(models.TextChoices):
    """What a hold stops; `key` names it."""

    ALL = "all", "everything"
    TENANT = "tenant", "a tenant"
    QUEUE = "queue", "a queue"
    TYPE = "type", "a job type"
    GROUP = "group", "a group"


class Hold(models.Model):
    """From `since` to `until` (null: until it is lifted) nothing of its target starts; what runs goes on. Several may
    hold the same target. Lifting sets `until`: the row stays until its drain has ended."""

    scope = models.CharField(max_length=6, choices=HoldScope.choices)
    key = models.CharField(
        max_length=100,
        blank=True,
        default="",
        help_text="The tenant's slug, or the name of queue, type or group.",
    )
    reason = models.CharField(max_length=500, blank=True, default="")
    by = models.CharField(max_length=150, blank=True, default="")
    since = models.DateTimeField(db_default=Now())
    until = models.DateTimeField(null=True, blank=True)
    drain = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST)],
        help_text="Starts per second once it has ended, until the backlog is gone; empty: full speed.",
    )
    drained_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering: ClassVar[list[str]] = ["-id"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(condition=Q(scope__in=HoldScope.values), name="jobs_hold_scope"),
            models.CheckConstraint(
                condition=Q(scope="all", key="") | (~Q(scope="all") & ~Q(key="")), name="jobs_hold_key"
            ),
            models.CheckConstraint(
                condition=Q(until__isnull=True) | Q(until__gte=models.F("since")), name="jobs_hold_window"
            ),
            models.CheckConstraint(condition=Q(drain__gte=1, drain__lte=MOST), name="jobs_hold_drain"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            # What a claim has to know of is what this holds: what is in force, and what drains.
            models.Index(
                fields=["scope", "key"], condition=Q(drained_at__isnull=True), name="jobs_hold_open"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_scope_display()} {self.key}".strip()
