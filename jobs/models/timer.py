"""`Timer`: the narrow row by which a job that was never dispatched waits for its due time."""

from __future__ import annotations

from django.db import models

from jobs.fields import JobIdField
from jobs.links import JobLink


class Timer(models.Model):
    """Partitioned like the job. Whatever waits again (retry, snooze, postponement) waits in its queue entry."""

    job_id = JobIdField(primary_key=True)
    due_at = models.DateTimeField()
    job = JobLink(related_name="timer")
    tenant_id = models.BigIntegerField()
    queue = models.CharField(max_length=100)
    job_type = models.CharField(max_length=100)
    priority = models.SmallIntegerField()
    max_attempts = models.IntegerField()
    group = models.CharField(max_length=100, null=True)
    concurrency_key = models.CharField(max_length=200, null=True)

    def __str__(self) -> str:
        return f"{self.job_type} {self.job_id}"
