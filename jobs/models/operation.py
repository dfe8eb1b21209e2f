"""`Operation`: one verb on all jobs that a search finds, done piece by piece by the dispatcher's operations loop."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class OperationState(models.TextChoices):
    ASKED = "asked", "asked: somebody else approves it first"
    QUEUED = "queued"
    PROBING = "probing", "probing: a few jobs first"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"


OPEN = (OperationState.QUEUED, OperationState.PROBING, OperationState.RUNNING)
"""In these the loop works on it."""
OVER = (OperationState.STOPPED, OperationState.DONE, OperationState.FAILED)


class Operation(models.Model):
    """How far it is stands in `cursor`, which moves in the transaction of each chunk: whoever dies in the middle left
    the chunk undone, and who goes on begins there. Jobs scheduled or ended after `cutoff` are left alone."""

    verb = models.CharField(max_length=20)
    query = models.CharField(max_length=1000)
    """A line of `jobs.search` with absolute windows."""
    arguments = models.JSONField(default=dict)
    scope = ArrayField(models.BigIntegerField(), null=True)
    """Ids of the tenants its author saw; null: all."""
    reason = models.CharField(max_length=500)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    author_name = models.CharField(max_length=150)
    approver_name = models.CharField(max_length=150, default="", blank=True)
    """Who has approved it, where that was asked for (SCHEDULER["approve_above"])."""
    action_id = models.BigIntegerField()
    """Its row in the audit, which the jobs that it changed bear too."""
    hold_id = models.BigIntegerField(null=True)
    """The hold that ends with it."""
    undoes = models.ForeignKey("self", models.PROTECT, null=True, related_name="undone_by")
    cutoff = models.DateTimeField()
    ceiling = models.IntegerField()
    """It pauses after so many jobs."""
    rate = models.IntegerField()
    """Jobs a second, at most."""
    probe = models.IntegerField(default=0)
    """So many jobs first; when too many of them fail again it pauses. 0: none."""
    expected = models.BigIntegerField(null=True)
    """How many jobs the search found before it began; null: not known."""
    expected_how = models.CharField(max_length=9, default="unknown")

    state = models.CharField(max_length=7, choices=OperationState.choices, default=OperationState.QUEUED)
    note = models.CharField(max_length=500, default="", blank=True)
    """Why it is paused or has failed."""
    cursor = models.UUIDField(null=True)
    """Jobs up to this id are done with; of an undo: the number of the chunk."""
    chunk_size = models.IntegerField(default=500)
    chunks = models.IntegerField(default=0)
    looked = models.IntegerField(default=0)
    changed = models.IntegerField(default=0)
    requested = models.IntegerField(default=0)
    """Running jobs that were asked to stop."""
    skipped = models.JSONField(default=dict)
    """Jobs left alone, by reason."""
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    next_at = models.DateTimeField(db_default=Now())
    """The next chunk is not done before."""
    heartbeat_at = models.DateTimeField(null=True)
    """The last chunk."""
    ended_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ("view",)
        permissions = (("approve_operation", "Can approve operations of other people"),)
        ordering: ClassVar[list[str]] = ["-id"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["next_at"], condition=Q(state__in=OPEN), name="jobs_operation_open"),
        ]

    def __str__(self) -> str:
        return f"operation {self.pk}: {self.verb} all of {self.query}"


class OperationChunk(models.Model):
    """What one transaction of an operation did: the jobs that it changed, and what they were before."""

    operation = models.ForeignKey(Operation, models.CASCADE, related_name="pieces")
    number = models.IntegerField()
    at = models.DateTimeField(db_default=Now())
    looked = models.IntegerField()
    ids = ArrayField(models.UUIDField(), default=list)
    befores = ArrayField(models.CharField(max_length=100), default=list)
    """For each of `ids`: run time, priority or queue before; empty for the verbs that need none."""
    skipped = models.JSONField(default=dict)

    class Meta:
        default_permissions = ()
        ordering: ClassVar[list[str]] = ["operation_id", "number"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["operation", "number"], name="jobs_operationchunk_once"),
        ]

    def __str__(self) -> str:
        return f"chunk {self.number} of operation {self.operation_id}"
