"""Jobs: found by window and exact words, read in full, retried and cancelled; never edited."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

from jobs import scope
from jobs.console import bundle, commands, detail, exporting, me, named, saving, show, triage
from jobs.console.base import ReadOnly
from jobs.console.changelist import JobList
from jobs.console.operations import operation_verbs
from jobs.console.page import LIVE, fragment, in_zone, live_part, live_url
from jobs.console.pages import JOB_PAGES
from jobs.models import Job
from jobs.operator import COMMANDS
from jobs.querysets import JobQuerySet


class JobAdmin(ReadOnly):
    mixes_tenants = False
    list_display: Any = (
        "state_badge",
        "job_type",
        "owner",
        "queue",
        "due",
        "next_run",
        "attempts",
        "group_name",
    )
    list_display_links = ("job_type",)
    actions: Any = ("retry_selected", "cancel_selected")
    title = "Jobs"
    changelist: type[JobList] = JobList

    def get_queryset(self, request: HttpRequest) -> JobQuerySet:
        """The tenants that the operator sees."""
        found: JobQuerySet = Job.objects.defer("payload")
        seen = scope.scope_of(request.user)
        return found if seen is None else found.filter(tenant_id__in=seen)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[JobList]:
        return self.changelist

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """No lookup through the address at all: `payload__…` would be an oracle, `error__iregex` a full scan."""
        return False

    def has_retry_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(COMMANDS["retry"].permission))

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(COMMANDS["cancel"].permission))

    def get_urls(self) -> list[URLPattern]:
        from jobs.console.failed import FailedJobs

        failed = FailedJobs(Job, self.admin_site)
        view = self.admin_site.admin_view
        return [
            path("failed/", view(in_zone(failed.changelist_view)), name="jobs_job_failed"),
            path(
                "command/<slug:verb>/",
                view(in_zone(require_POST(self.command_view))),
                name="jobs_job_command",
            ),
            *(
                path(f"{each.path}/", view(each.view(self)), name=f"jobs_job_{each.name}")
                for each in JOB_PAGES
            ),
            path("me/", view(partial(me.view, self)), name="jobs_job_me"),
            path("errors/triage/", view(in_zone(partial(triage.view, self))), name="jobs_job_triage"),
            path("export/", view(require_POST(partial(exporting.jobs, self))), name="jobs_job_export"),
            path("health/bundle/", view(require_POST(partial(bundle.view, self))), name="jobs_job_bundle"),
            path("views/save/", view(require_POST(partial(saving.save, self))), name="jobs_job_save_view"),
            path(
                "views/<int:pk>/forget/",
                view(require_POST(partial(saving.forget, self))),
                name="jobs_job_forget_view",
            ),
            *super().get_urls(),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST" and (verb := _verb(request)):
            # Django would only say that there is no such action; a denied attempt is recorded.
            if refusal := commands.refusal(request, verb, request.POST.getlist(ACTION_CHECKBOX_NAME)):
                return refusal
        elif job_id := named.job_id(request.GET.get("q", "").strip().removeprefix("id:")):
            return HttpResponseRedirect(reverse("admin:jobs_job_change", args=[job_id]))
        return super().changelist_view(
            request,
            {
                "title": self.title,
                "is_failed": False,
                "operation_verbs": operation_verbs(request.user),
                **(extra_context or {}),
            },
        )

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if not self.has_view_permission(request) or request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        return self.detail(request, object_id)

    def detail(self, request: HttpRequest, object_id: str, *, reveal: bool = False) -> HttpResponse:
        """The page of one job, with the values of its payload if `reveal`."""
        job_id = named.job_id(object_id)
        job = detail.find(job_id, scope.scope_of(request.user)) if job_id else None
        if job is None:
            self.message_user(request, named.missing(object_id), messages.WARNING)
            return HttpResponseRedirect(reverse("admin:jobs_job_changelist"))
        request.current_app = self.admin_site.name
        part = live_part(request, "job", lambda asked: detail.live(asked, job))
        if LIVE in request.GET:
            return fragment(request, part)
        context = self.admin_site.each_context(request) | detail.context(request, job, reveal=reveal)
        context |= {
            "part": part,
            "live_url": live_url(request, request.path if not reveal else _page_of(job)),
        }
        return TemplateResponse(
            request, "jobs/job_detail.html", context | {"opts": self.opts, "media": self.media}
        )

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:jobs_job_change", args=[object_id]))

    def command_view(self, request: HttpRequest, verb: str) -> HttpResponse:
        return commands.view(self, request, verb)

    @admin.action(description="Retry the ticked jobs …", permissions=["retry"])
    def retry_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return commands.ask_ticked(self, request, "retry")

    @admin.action(description="Cancel the ticked jobs …", permissions=["cancel"])
    def cancel_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return commands.ask_ticked(self, request, "cancel")

    @admin.display(description="state")
    def state_badge(self, job: Job) -> str:
        return show.badge(str(job.state))

    @admin.display(description="tenant")
    def owner(self, job: Job) -> str:
        return show.link("tenant", job.tenant_id, show.visible(job.tenant.slug))

    @admin.display(description="due")
    def due(self, job: Job) -> str:
        return show.moment(job.due_at)

    @admin.display(description="next run")
    def next_run(self, job: Any) -> str:
        return show.moment(job.run_at)

    @admin.display(description="attempts")
    def attempts(self, job: Any) -> str:
        return f"{job.attempt} of {job.max_attempts}"

    @admin.display(description="group")
    def group_name(self, job: Job) -> str:
        return show.visible(job.group or show.NOTHING)


def _verb(request: HttpRequest) -> str | None:
    """The verb behind the action that a posted change list names."""
    names = {f"{verb}_selected": verb for verb in COMMANDS}
    return next((names[name] for name in request.POST.getlist("action") if name in names), None)


def _page_of(job: Job) -> str:
    return reverse("admin:jobs_job_change", args=[job.pk])
