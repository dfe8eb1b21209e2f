"""Dispatchers, supervisors and workers: who lives, who ended, and who was lost without a word."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Case, Count, F, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce, Now
from django.http import HttpRequest
from django.urls import URLPattern, path

from jobs.console import show
from jobs.console.base import ReadOnly
from jobs.console.pages import PROCESS_PAGES
from jobs.models import Process, QueueEntry


class ProcessAdmin(ReadOnly):
    list_display = ("lease_state", "process", "address", "holds", "queue_names", "until")
    list_display_links = ("process",)
    list_filter = ("kind",)
    empty = "No process yet. Start manage.py rundispatcher and manage.py runworker."
    fields = (
        "lease_state",
        "process",
        "address",
        "parent",
        "holds",
        "queue_names",
        "type_names",
        "started",
        "until",
    )
    ordering = (F("ended_at").desc(nulls_first=True), "-lease_expires_at", "-id")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            *(
                path(f"{each.path}/", view(each.view(self)), name=f"jobs_process_{each.name}")
                for each in PROCESS_PAGES
            ),
            *super().get_urls(),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Process]:
        """The lease is judged by the database's clock, in the same statement."""
        held = QueueEntry.objects.filter(process_id=OuterRef("pk")).order_by().values("process_id")
        found: QuerySet[Process] = super().get_queryset(request)
        return found.annotate(
            lease=Case(
                When(ended_at__isnull=False, then=Value("ended")),
                When(lease_expires_at__gt=Now(), then=Value("live")),
                default=Value("lost"),
            ),
            held=Coalesce(Subquery(held.annotate(n=Count("*")).values("n")), Value(0)),
        )

    @admin.display(description="lease")
    def lease_state(self, process: Any) -> str:
        return show.badge(process.lease)

    @admin.display(description="process")
    def process(self, process: Process) -> str:
        return f"{process.kind} {process.pk}"

    @admin.display(description="host and pid")
    def address(self, process: Process) -> str:
        return f"{show.visible(process.host)}:{process.pid}"

    @admin.display(description="parent")
    def parent(self, process: Process) -> str:
        return (
            show.NOTHING
            if process.parent_id is None
            else show.link("process", process.parent_id, process.parent_id)
        )

    @admin.display(description="jobs held")
    def holds(self, process: Any) -> int:
        return int(process.held)

    @admin.display(description="queues")
    def queue_names(self, process: Process) -> str:
        return show.visible(", ".join(process.queues)) or show.NOTHING

    @admin.display(description="types")
    def type_names(self, process: Process) -> str:
        return show.visible(", ".join(process.types)) or show.NOTHING

    @admin.display(description="started")
    def started(self, process: Process) -> str:
        return show.moment(process.started_at)

    @admin.display(description="ended, or lease until")
    def until(self, process: Process) -> str:
        return show.moment(process.ended_at or process.lease_expires_at)
