"""`JobQuerySet`: jobs by state, and the verbs cancel, retry and reschedule on whatever the queryset finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, NoReturn, Self
from uuid import UUID

from django.db import connections, models
from django.db.models import Case, F, FilteredRelation, Q, Value, When
from django.db.models.functions import Now

from jobs import verbs
from jobs.report import Report
from jobs.states import FINAL, JobState

CHUNK = 500
"""Jobs per transaction of a verb on many."""
_BORN = "jobs are born by Job.objects.schedule() or schedule_many() alone"

_IN_ENTRY: dict[JobState, Q] = {
    JobState.RUNNING: Q(entry__lease_token__isnull=False),
    JobState.QUEUED: Q(entry__lease_token__isnull=True, entry__run_at__lte=Now()),
    JobState.RETRYABLE: Q(entry__lease_token__isnull=True, entry__run_at__gt=Now(), entry__waits="retry"),
}
_POSTPONED = Q(entry__lease_token__isnull=True, entry__run_at__gt=Now()) & ~Q(entry__waits="retry")


class JobQuerySet(models.QuerySet[Any]):
    def due_between(self, start: datetime, end: datetime) -> Self:
        """Jobs due in [start, end): the window that keeps a query on few days."""
        return self.filter(due_at__gte=start, due_at__lt=end)

    def in_state(self, state: JobState, start: datetime, end: datetime) -> Self:
        """Jobs due in [start, end) that are in `state` now."""
        jobs = self.due_between(start, end)
        if state in FINAL:
            return jobs.filter(
                outcome__state=state.value, outcome__due_at__gte=start, outcome__due_at__lt=end
            )
        if state == JobState.SCHEDULED:
            timer = FilteredRelation("timer", condition=Q(timer__due_at__gte=start, timer__due_at__lt=end))
            return jobs.annotate(_timer=timer).filter(Q(_timer__job_id__isnull=False) | _POSTPONED)
        return jobs.filter(_IN_ENTRY[state])

    def with_state(self, start: datetime, end: datetime) -> Self:
        """Jobs due in [start, end), each with its `state`, in the same statement."""
        outcome = FilteredRelation(
            "outcome", condition=Q(outcome__due_at__gte=start, outcome__due_at__lt=end)
        )
        state = Case(
            When(_outcome__state__isnull=False, then=F("_outcome__state")),
            *(When(condition, then=Value(name.value)) for name, condition in _IN_ENTRY.items()),
            default=Value(JobState.SCHEDULED.value),
            output_field=models.CharField(),
        )
        return self.due_between(start, end).annotate(_outcome=outcome).annotate(state=state)

    def cancel(self, *, action_id: int | None = None) -> Report:
        """See that these jobs do not run; 500 a transaction, unless the caller has one open."""
        return self._each(partial(verbs.cancel, action_id=action_id))

    def retry(self, *, action_id: int | None = None) -> Report:
        """Another run for those of these jobs that failed or were cancelled."""
        return self._each(partial(verbs.retry, action_id=action_id))

    def reschedule(self, run_at: datetime, *, action_id: int | None = None) -> Report:
        """Run those of these jobs that wait at `run_at` instead."""
        return self._each(partial(verbs.reschedule, run_at=run_at, action_id=action_id))

    def _each(self, verb: Callable[..., Report]) -> Report:
        report = Report()
        jobs: Any = self.all()
        jobs._for_write = True  # as of update() and delete(): a router's replica may not know them yet
        for ids in jobs._chunks():
            report += verb(ids, using=jobs.db)
        return report

    def _chunks(self) -> Iterator[list[UUID]]:
        ids = self.values_list("pk", flat=True).iterator(chunk_size=CHUNK)
        while chunk := self._next(ids):
            yield chunk

    def _next(self, ids: Iterator[UUID]) -> list[UUID]:
        with connections[self.db].wrap_database_errors:  # Django lets those of closing its cursor through
            return list(islice(ids, CHUNK))

    def create(self, **kwargs: Any) -> NoReturn:
        raise TypeError(_BORN)

    def bulk_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(_BORN)

    def update(self, **kwargs: Any) -> NoReturn:
        raise TypeError("jobs are immutable: use cancel(), retry() or reschedule()")

    def bulk_update(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("jobs are immutable: use cancel(), retry() or reschedule()")

    def delete(self) -> NoReturn:
        raise TypeError("jobs are never deleted: cancel() them; their day is dropped after the retention")

    update.alters_data = True  # type: ignore[attr-defined]
    delete.alters_data = True  # type: ignore[attr-defined]
