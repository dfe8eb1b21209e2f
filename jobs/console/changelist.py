"""The change list of jobs: a window, a few bounded statements for a page, paging by key. Never a count, never an OFFSET."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.admin.views.main import ChangeList
from django.http import HttpRequest
from django.utils import timezone

from jobs.console.places import NoPlace, place
from jobs.console.searching import SHIPPED, Search, views
from jobs.scope import scope_of
from jobs.search import Found, find
from jobs.search.find import place_text
from jobs.search.guard import TooSlow

UNUSED = {"filter_specs": [], "has_filters": False, "has_active_filters": False, "clear_all_filters_qs": "?"}


class JobList(ChangeList):
    """Django's change list without its paginator; `form` replaces its filters, lookups and search."""

    fallback: ClassVar[str] = ""
    form: Search
    found: Found
    notices: list[str]
    older: str | None = None
    newer: str | None = None
    unread: str = ""
    """Why nothing was looked at."""
    shipped = SHIPPED

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> Any:
        self.__dict__.update(UNUSED)
        self.form = Search(request.GET, timezone.now(), scope_of(request.user), self.fallback)
        self.notices = []
        if self.form.unknown:
            self.notices.append(f"Not a filter of this page, ignored: {', '.join(self.form.unknown)}.")
        if self.form.query:
            self.notices += self.form.query.notes
        return self.root_queryset.none()

    def get_results(self, request: HttpRequest) -> None:
        self.found = Found([])
        if self.form.query:
            try:
                with place(request):
                    self.found = find(
                        self.form.query,
                        after=self.form.after,
                        before=self.form.before,
                        size=self.list_per_page,
                    )
            except TooSlow:  # even the page's own rows: a lock, or a server in trouble
                self.unread = "This search took too long and was stopped. Nothing was found out."
            except NoPlace:
                self.unread = (
                    "Other pages of yours are still being read. Nothing was searched: load this again."
                )
        if self.found.older:
            self.older = self.get_query_string({"after": place_text(self.found.older), "before": None})
        if self.found.newer:
            self.newer = self.get_query_string({"before": place_text(self.found.newer), "after": None})
        self.result_list = self.found.jobs
        self.result_count = len(self.found.jobs)
        self.full_result_count = self.paginator = None
        self.can_show_all = self.multi_page = False
        self.show_full_result_count, self.show_admin_actions = False, True
        self.saved = views(request.user)
        self.mine = [view for view in self.saved if view.owner_id == request.user.pk]


class FailedList(JobList):
    """What failed lately, by the time of failing."""

    fallback = "state:failed finished:yesterday..now"
