"""`Process`: a live dispatcher or worker. It owns the lease of everything it claimed."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class ProcessKind(models.TextChoices):
    DISPATCHER = "dispatcher"
    SUPERVISOR = "supervisor"
    WORKER = "worker"


class Process(models.Model):
    """Rows stay, marked ended, for the retention. A process found expired never returns under its id."""

    kind = models.CharField(max_length=10, choices=ProcessKind.choices)
    host = models.CharField(max_length=255)
    pid = models.IntegerField()
    parent_id = models.BigIntegerField(null=True)
    queues = ArrayField(models.CharField(max_length=100), default=list)
    types = ArrayField(models.CharField(max_length=100), default=list)
    started_at = models.DateTimeField(db_default=Now())
    lease_expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ("view",)
        verbose_name_plural = "processes"
        ordering: ClassVar[list[str]] = ["-id"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["lease_expires_at"], condition=Q(ended_at__isnull=True), name="jobs_process_live"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.id} ({self.host}:{self.pid})"
