"""`Attempt`: one run of a handler that did not end well."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.indexes import BrinIndex
from django.db import models

from jobs.fields import JobIdField


class Attempt(models.Model):
    """Partitioned like the job; keyed by the lease token too, since a retried job may use its attempt numbers again."""

    pk = models.CompositePrimaryKey("job_id", "lease_token")
    job_id = JobIdField()
    lease_token = models.UUIDField()
    due_at = models.DateTimeField()
    attempt = models.IntegerField()
    process_id = models.BigIntegerField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField()
    error_class = models.CharField(max_length=200)
    message = models.TextField()
    traceback = models.TextField(default="")
    fingerprint = models.CharField(max_length=16, null=True)

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            BrinIndex(fields=["finished_at"], autosummarize=True, name="jobs_attempt_finished"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.attempt} of {self.job_id}: {self.error_class}"
