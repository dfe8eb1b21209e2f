"""The pages that are no list of rows, and where each hangs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from jobs.console import errors, fleet, forecast, health, overview, queues, show, types, waiting
from jobs.console.page import Gather, console_page


@dataclass(frozen=True)
class PageOf:
    name: str
    """Of its address; also its title, unless it is about one thing that the address names."""
    path: str
    title: str
    gather: Gather
    part: str = ""
    section: str = ""
    kind: str = ""
    """Before the name of the one thing that it is about."""
    permission: str = "jobs.view_job"
    mixes_tenants: bool = True
    """Only for who sees all of them."""
    template: str = "jobs/page.html"

    def view(self, admin: Any) -> Callable[..., HttpResponse]:
        def page_view(request: HttpRequest) -> HttpResponse:
            title = self.title
            if not title and (name := request.GET.get("name", "")[:100]):
                title = f"{self.kind} {show.visible(name)}"
            return console_page(
                admin,
                request,
                self.part or self.name,
                title or "Nothing named",
                self.gather,
                permission=self.permission,
                mixes_tenants=self.mixes_tenants,
                section=self.section,
                template=self.template,
            )

        return page_view


JOB_PAGES = (
    PageOf("overview", "overview", "Overview", overview.gather, mixes_tenants=False),
    PageOf("errors", "errors", "Errors", errors.gather),
    PageOf("waiting", "waiting", "Why jobs wait", waiting.gather, section="jobs", mixes_tenants=False),
    PageOf("forecast", "forecast", "Forecast", forecast.gather, mixes_tenants=False),
    PageOf("types", "types", "Job types", types.gather),
    PageOf("type", "types/one", "", types.gather_one, section="types", kind="Type"),
    PageOf("health", "health", "Health", health.gather, template="jobs/health.html"),
)
PROCESS_PAGES = (
    PageOf("workers", "workers", "Workers", fleet.gather_workers, permission="jobs.view_process"),
    PageOf(
        "dispatchers", "dispatchers", "Dispatchers", fleet.gather_dispatchers, permission="jobs.view_process"
    ),
)
QUEUES = PageOf("queues", "", "Queues", queues.gather, permission="jobs.view_queue")
QUEUE = PageOf(
    "one",
    "one",
    "",
    queues.gather_one,
    part="queue",
    section="queues",
    kind="Queue",
    permission="jobs.view_queue",
)
