"""The change list of jobs: a window, one statement for a page, paging by key. Never a count, never an OFFSET."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib.admin.views.main import ChangeList
from django.db.models import F, Value
from django.db.models.functions import Coalesce
from django.http import HttpRequest

from jobs.console.filters import Filter, JobFilter
from jobs.console.guard import PATIENCE, TooSlow, bounded
from jobs.ids import due_of
from jobs.models import Job
from jobs.states import JobState

UNUSED = {"filter_specs": [], "has_filters": False, "has_active_filters": False, "clear_all_filters_qs": "?"}


class KeysetList(ChangeList):
    """Django's change list without its paginator; `form` replaces its filters, lookups and search."""

    form_class: ClassVar[type[Filter]]
    form: Any
    notices: list[str]
    older: str | None = None
    newer: str | None = None

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> Any:
        self.__dict__.update(UNUSED)
        self.form = self.form_class(request.GET)
        self.notices = []
        if self.form.unknown:
            self.notices.append(f"Not a filter of this page, ignored: {', '.join(self.form.unknown)}.")
        if not self.form.is_valid():
            return self.root_queryset.none()
        asked = self.form.cleaned_data
        found = self.page(asked)
        if asked["job_type"]:
            found = found.filter(job_type=asked["job_type"])
        if asked["tenant"] is not None:
            found = found.filter(tenant_id=asked["tenant"])
        return found.select_related("tenant")

    def page(self, asked: dict[str, Any]) -> Any:
        """The jobs that are asked for, in order from where the page begins; reversed for a page before a place."""
        raise NotImplementedError

    def place(self, job: Any) -> str:
        """Where a page after or before this row begins."""
        raise NotImplementedError

    def get_results(self, request: HttpRequest) -> None:
        size = self.list_per_page
        rows: list[Any] = []
        try:
            with bounded(self.queryset.db):
                rows = list(self.queryset[: size + 1])
        except TooSlow:
            self.notices.append(
                f"This search took longer than {PATIENCE} and was stopped. Shorten the window, or add a tenant, type "
                "or group."
            )
        back = self.form.is_valid() and self.form.cleaned_data["before"]
        more, rows = len(rows) > size, rows[:size]
        if back:
            rows.reverse()
        self._link_pages(
            rows, more_older=bool(back) or more, more_newer=more if back else self._is_later_page()
        )
        self.result_list = rows
        self.result_count = len(rows)
        self.full_result_count = self.paginator = None
        self.can_show_all = self.multi_page = False
        self.show_full_result_count, self.show_admin_actions = False, True

    def _is_later_page(self) -> bool:
        return self.form.is_valid() and bool(self.form.cleaned_data["after"])

    def _link_pages(self, rows: Sequence[Any], *, more_older: bool, more_newer: bool) -> None:
        if rows and more_older:
            self.older = self.get_query_string({"after": self.place(rows[-1]), "before": None})
        if rows and more_newer:
            self.newer = self.get_query_string({"before": self.place(rows[0]), "after": None})


class JobList(KeysetList):
    """By due time, latest first. The id carries the due time, so it alone is the key."""

    form_class = JobFilter

    def page(self, asked: dict[str, Any]) -> Any:
        window, after, before = self.form.window, asked["after"], asked["before"]
        if before:
            window = window.since(due_of(before))
        elif after:
            window = window.upto(due_of(after))
        found: Any = self.root_queryset
        if state := asked["state"]:
            found = found.in_state(JobState(state), window.start, window.end)
        found = found.with_state(window.start, window.end).annotate(
            attempt=Coalesce("_outcome__attempt", "entry__attempt", Value(0)), run_at=F("entry__run_at")
        )
        if asked["group"]:
            found = found.filter(group=asked["group"])
        if before:
            return found.filter(id__gt=before).order_by("due_at", "id")
        if after:
            found = found.filter(id__lt=after)
        return found.order_by("-due_at", "-id")

    def place(self, job: Job) -> str:
        return str(job.pk)
