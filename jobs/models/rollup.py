"""`Rollup`: what happened in a minute or an hour, by queue, type and tenant. `Backlog` and `Forecast`: what is and what
will be. Written by the dispatcher's rollup loop, read through `jobs.rollups`; no page ever counts jobs."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models


class Kind(models.TextChoices):
    """What a row of numbers is about. Never the product of several: that would be as many rows as jobs."""

    ALL = "all"
    QUEUE = "queue"
    TYPE = "type"
    TENANT = "tenant"


class Step(models.IntegerChoices):
    """Seconds that a row covers."""

    MINUTE = 60
    HOUR = 3600


class Rollup(models.Model):
    """One step of time of one queue, type or tenant (by its slug), or of all (name ""). No row: nothing happened."""

    kind = models.CharField(max_length=6, choices=Kind.choices)
    step = models.SmallIntegerField(choices=Step.choices)
    name = models.CharField(max_length=100, default="", blank=True)
    at = models.DateTimeField()
    """When the step begins."""
    due = models.IntegerField(default=0)
    """Jobs whose due time lies in it."""
    completed = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)
    cancelled = models.IntegerField(default=0)
    errors = models.IntegerField(default=0)
    """Attempts that did not end well, those that are tried again included."""
    late = ArrayField(models.IntegerField(), default=list)
    """Histogram: from due (or scheduled, when that was later) to the first start; jobs whose first attempt ended in it."""
    ran = ArrayField(models.IntegerField(), default=list)
    """Histogram: how long the last attempts of the jobs that ended in it ran."""
    ran_seconds = models.FloatField(default=0.0)
    """Sum of these."""

    class Meta:
        default_permissions = ()
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["kind", "step", "name", "at"], name="jobs_rollup_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["step", "at", "kind"], name="jobs_rollup_at"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.at:%Y-%m-%d %H:%M}"


class RollupProgress(models.Model):
    """One row: how far the rollups are. Its lock is the loop's turn: of several dispatchers one works."""

    first = models.DateTimeField()
    """Minutes before it were looked at once."""
    second = models.DateTimeField()
    """Minutes before it were looked at again, for what had been committed late: they do not change any more."""
    hour = models.DateTimeField()
    """Hours before it are summed up."""
    counted_at = models.DateTimeField(null=True)
    """When the backlog was counted."""
    foreseen_at = models.DateTimeField(null=True)
    """When the forecast was counted."""

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"up to {self.first:%Y-%m-%d %H:%M}"


class Backlog(models.Model):
    """What is in the queues, as counted a few seconds ago, by queue, type and tenant (by its slug), and of all (name "")."""

    kind = models.CharField(max_length=6, choices=Kind.choices)
    name = models.CharField(max_length=100, default="", blank=True)
    waiting = models.IntegerField(default=0)
    """Jobs whose run time has come and that nobody has claimed."""
    oldest = models.DateTimeField(null=True)
    """The earliest run time among them."""
    running = models.IntegerField(default=0)
    retrying = models.IntegerField(default=0)
    """Failed attempts that wait for their back-off to pass."""
    later = models.IntegerField(default=0)
    """Dispatched ahead of their time, snoozed or rescheduled."""
    parked = models.IntegerField(default=0)

    class Meta:
        default_permissions = ()
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["kind", "name"], name="jobs_backlog_once"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.waiting} waiting"


class Forecast(models.Model):
    """Jobs that come due in a minute of the next hour, as counted about a minute ago."""

    kind = models.CharField(max_length=6, choices=Kind.choices)
    name = models.CharField(max_length=100, default="", blank=True)
    at = models.DateTimeField()
    due = models.IntegerField()

    class Meta:
        default_permissions = ()
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["kind", "name", "at"], name="jobs_forecast_once"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.at:%H:%M}: {self.due} due"
