"""Failed jobs by the time of their failure, each with its error."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.text import Truncator

from jobs.console import show
from jobs.console.changelist import FailedList
from jobs.console.jobs import JobAdmin


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
