"""`Outcome`: how a job ended. Inserted once by whoever ends it; only an operator's retry deletes it."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q

from jobs.fields import JobIdField
from jobs.links import JobLink
from jobs.states import FINAL, JobState


class Outcome(models.Model):
    """Partitioned like the job. `lease_token` tells a repeated settle from a lost lease."""

    job_id = JobIdField(primary_key=True)
    due_at = models.DateTimeField()
    job = JobLink(related_name="outcome")
    state = models.CharField(max_length=9, choices=[(s.value, s.value) for s in JobState if s in FINAL])
    attempt = models.IntegerField()
    max_attempts = models.IntegerField()
    crashes = models.IntegerField(default=0)
    lease_token = models.UUIDField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField()
    process_id = models.BigIntegerField(null=True)
    error = models.CharField(max_length=500, null=True)
    error_fingerprint = models.CharField(max_length=16, null=True)
    action_id = models.BigIntegerField(null=True)
    result = models.JSONField(null=True)

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["finished_at"], condition=Q(state=JobState.FAILED.value), name="jobs_outcome_failed"
            ),
            # Lists of what did not end well, in the order of due times; completed jobs pay nothing for it.
            models.Index(
                fields=["state", "due_at", "job_id"],
                condition=Q(state__in=(JobState.FAILED.value, JobState.CANCELLED.value)),
                name="jobs_outcome_unhappy",
            ),
            # What ended in a minute, for the rollups: rows lie in the order in which they ended, so a summary per
            # megabyte is enough, and a settle neither writes to this index nor logs for it.
            BrinIndex(fields=["finished_at"], autosummarize=True, name="jobs_outcome_finished"),
        ]

    def __str__(self) -> str:
        return f"{self.state} {self.job_id}"
