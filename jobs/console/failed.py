"""Failed jobs by the time of their failure, each with its error."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import F, Q, Value
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.text import Truncator

from jobs.console import show
from jobs.console.changelist import KeysetList
from jobs.console.filters import FailedFilter
from jobs.console.jobs import JobAdmin
from jobs.states import JobState


class FailedList(KeysetList):
    """By the time of failing, latest first, from the partial index on failed outcomes of the due days looked at."""

    form_class = FailedFilter

    def page(self, asked: dict[str, Any]) -> Any:
        window, due = self.form.window, self.form.due_window
        found: Any = self.root_queryset
        found = found.in_state(JobState.FAILED, due.start, due.end).filter(
            outcome__finished_at__gte=window.start, outcome__finished_at__lt=window.end
        )
        found = found.annotate(
            state=Value(JobState.FAILED.value),
            attempt=F("outcome__attempt"),
            finished_at=F("outcome__finished_at"),
            error=F("outcome__error"),
            fingerprint=F("outcome__error_fingerprint"),
        )
        if asked["fingerprint"]:
            found = found.filter(outcome__error_fingerprint=asked["fingerprint"])
        if asked["before"]:
            return self._from(found, asked["before"], "gte", "lte").order_by("outcome__finished_at", "id")
        if asked["after"]:
            found = self._from(found, asked["after"], "lte", "gte")
        return found.order_by("-outcome__finished_at", "-id")

    def _from(self, found: Any, place: tuple[datetime, UUID], side: str, not_yet: str) -> Any:
        moment, job_id = place
        same = Q(outcome__finished_at=moment, **{f"outcome__job_id__{not_yet}": job_id})
        return found.filter(~same, **{f"outcome__finished_at__{side}": moment})

    def place(self, job: Any) -> str:
        return f"{job.finished_at.isoformat()}~{job.pk}"


class FailedJobs(JobAdmin):
    """A second list of the same jobs; not registered, reached at `job/failed/`."""

    list_display = ("finished", "job_type", "error_text", "owner", "attempts", "due")
    actions: Any = ("retry_selected",)
    title = "Failed jobs"
    changelist = FailedList

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().changelist_view(request, {"is_failed": True, **(extra_context or {})})

    @admin.display(description="failed")
    def finished(self, job: Any) -> str:
        return show.moment(job.finished_at)

    @admin.display(description="error")
    def error_text(self, job: Any) -> str:
        text = show.clean(job.error or show.NOTHING)
        return format_html('<span class="error-text">{}</span>', Truncator(text).chars(160))
