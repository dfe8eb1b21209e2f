"""The job types of a shop, so that pages look as they do where people work."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from jobs.context import Context
from jobs.registry import cron, job_type, registry

QUEUES = ("billing", "mail", "reports", "search")
TYPES = ("billing.charge", "mail.send", "reports.render", "search.index")


def register() -> None:
    @job_type(
        "billing.charge", queue="billing", max_attempts=5, timeout=timedelta(minutes=2), shown=["order"]
    )
    def charge(context: Context, **payload: Any) -> None:
        """Charges a card."""

    @job_type("mail.send", queue="mail")
    def send(context: Context, **payload: Any) -> None:
        """Sends one mail."""

    @job_type("reports.render", queue="reports", timeout=timedelta(minutes=20), concurrency=2)
    def render(context: Context, **payload: Any) -> None:
        """Renders a report."""

    @cron("*/10 * * * *")
    @job_type("search.index", queue="search", atomic=True)
    def index(context: Context, **payload: Any) -> None:
        """Indexes what has changed."""


def alone(monkeypatch: Any) -> None:
    """These are the types of this process, and no others, until the test ends."""
    monkeypatch.setattr(registry, "_types", {})
    register()
