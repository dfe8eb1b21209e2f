"""`Job`: what was asked for. Inserted once, never changed, never deleted from: its day is dropped.

Rules of the partitioned tables (job, timer, outcome, attempt, cron tick; one partition per UTC day):
- Every statement gives each of them its own `due_at` bounds, as literals or equalities; looking up an id does.
- Rows are born by `Job.objects.schedule` alone. `due_at` never changes: retry and postponement live in the entry.
- There is no DEFAULT partition; a day exists before the first row that needs it (`jobs.partitions`).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from django.db import models, router
from django.db.models.functions import Now

from jobs.fields import JobIdField
from jobs.managers import JobManager
from jobs.models.tenant import Tenant
from jobs.querysets import JobQuerySet
from jobs.report import Report
from jobs.states import JobState

if TYPE_CHECKING:
    from jobs.why import Why

_MOMENT = timedelta(milliseconds=1)


class _State:
    """`job.state`: what with_state() annotated, else asked now, in one statement."""

    def __get__(self, job: Job | None, owner: type[Job]) -> JobState | _State:
        if job is None:
            return self
        found = Job.objects.using(job._state.db).with_state(job.due_at, job.due_at + _MOMENT).get(pk=job.pk)
        return JobState(found.__dict__["state"])


class Job(models.Model):
    id = JobIdField(primary_key=True)
    due_at = models.DateTimeField()
    tenant = models.ForeignKey(
        Tenant, models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    job_type = models.CharField(max_length=100)
    queue = models.CharField(max_length=100)
    priority = models.SmallIntegerField(default=0)
    payload = models.JSONField(default=dict)
    group = models.CharField(max_length=100, null=True)
    max_attempts = models.IntegerField()
    created_at = models.DateTimeField(db_default=Now())
    cron_id = models.BigIntegerField(null=True)
    slot = models.DateTimeField(null=True)
    unique_key = models.CharField(max_length=200, null=True)
    unique_for = models.DurationField(null=True)
    concurrency_key = models.CharField(max_length=200, null=True)

    objects: ClassVar[JobManager] = JobManager()

    state = _State()

    was_created: bool | None = None
    """Set on what schedule() returns: False when its unique key named a job that was there before."""

    class Meta:
        default_permissions = ("view",)
        permissions = (
            ("retry_job", "Can retry jobs"),
            ("cancel_job", "Can cancel jobs"),
            ("reschedule_job", "Can move jobs to another time"),
            ("prioritize_job", "Can change the priority of jobs"),
            ("move_job", "Can move jobs to another queue"),
            ("bulk_job", "Can start operations on up to 1,000 jobs"),
            ("bulk_many", "Can start operations on up to 100,000 jobs"),
            ("bulk_any", "Can start operations on any number of jobs"),
            ("every_tenant", "Sees the jobs of every tenant"),
            ("reveal_payload", "Can see the values in payloads and results"),
            ("export_job", "Can export lists of jobs and of the audit"),
            ("triage_error", "Can sort errors into known, ignored and mended"),
            ("mark_deploy", "Can mark deploys on the charts"),
            ("view_metrics", "Can read the metrics"),
            ("view_health", "Can take a support bundle"),
        )
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "due_at"], name="jobs_job_tenant"),
            models.Index(fields=["job_type", "due_at"], name="jobs_job_type"),
            models.Index(
                fields=["group", "due_at"], condition=models.Q(group__isnull=False), name="jobs_job_group"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job_type} {self.id}"

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("a job is immutable: jobs are born by Job.objects.schedule() and never changed")

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("a job is never deleted: cancel it; its day is dropped after the retention")

    def cancel(self) -> Report:
        """See that this job does not (continue to) run."""
        return self._alone().cancel()

    def retry(self) -> Report:
        """Another run for this job, if it failed or was cancelled."""
        return self._alone().retry()

    def reschedule(self, run_at: datetime) -> Report:
        """Run this job at `run_at` instead, if it waits."""
        return self._alone().reschedule(run_at)

    def why(self) -> Why:
        """What keeps this job from running now, by the rules of the claim; `str()` of it is one sentence."""
        from jobs.why import why  # it asks all the other tables

        return why(self.pk, self._state.db or "default")

    def _alone(self) -> JobQuerySet:
        using = router.db_for_write(Job, instance=self)
        alone: JobQuerySet = Job.objects.using(using).filter(pk=self.pk)
        return alone
