"""`UniqueKey`: at most one live job per (tenant, job type, key). Unpartitioned: uniqueness spans all days.
`KeyLimit`: how many jobs of a type run at once with one concurrency key."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class UniqueKey(models.Model):
    """Taken by schedule() before the job is inserted; freed in the transaction that ends the job, or by time."""

    tenant_id = models.BigIntegerField()
    job_type = models.CharField(max_length=100)
    key = models.CharField(max_length=200)
    job_id = models.UUIDField()
    expires_at = models.DateTimeField(null=True, help_text="Null: held until the job has ended.")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant_id", "job_type", "key"], name="jobs_uniquekey_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["job_id"], name="jobs_uniquekey_job"),
            models.Index(
                fields=["expires_at"],
                condition=models.Q(expires_at__isnull=False),
                name="jobs_uniquekey_expires",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job_type}:{self.key}"


class KeyLimit(models.Model):
    """Of types that allow more than one, or did; told by the workers that know the type, as they start."""

    job_type = models.CharField(max_length=100, primary_key=True)
    most = models.IntegerField()
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.job_type}: {self.most}"
