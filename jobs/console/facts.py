"""The rows of a job's page: what was asked for, where the job is, and who put it there."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.utils import timezone

from jobs.console import show
from jobs.console.sections import named, search
from jobs.models import OperatorAction
from jobs.states import JobState

NEAR = timedelta(days=3)


class Section(NamedTuple):
    title: str
    note: str
    facts: list[tuple[str, Any]]


def asked(job: Any, every: bool) -> Section:
    """`every`: who asks sees all tenants, and so the pages of types and queues."""
    kind, queue, group = (show.visible(each or "") for each in (job.job_type, job.queue, job.group))
    rows = [
        ("Id", job.pk),
        ("Type", show.leading(named("jobs_job_type", job.job_type), kind) if every else kind),
        ("Tenant", show.link("tenant", job.tenant_id, show.visible(job.tenant.slug))),
        ("Queue", show.leading(named("jobs_queue_one", job.queue), queue) if every else queue),
        ("Priority", job.priority),
        ("Due", job.due_at),
        ("Scheduled", job.created_at),
        ("Attempts at most", job.max_attempts),
        ("Group", group and show.leading(search(group=job.group, due=_around(job.due_at)), group)),
        ("Cron definition", job.cron_id and show.link("crondefinition", job.cron_id, job.cron_id)),
        ("Unique key", job.unique_key),
        ("Key held for", job.unique_for),
        ("Concurrency key", job.concurrency_key),
    ]
    optional = {"Group", "Cron definition", "Unique key", "Key held for", "Concurrency key"}
    return Section("Asked for", "", [(name, value) for name, value in rows if value or name not in optional])


def place(job: Any) -> Section:
    """Of timer, entry and outcome a job has exactly one."""
    if outcome := getattr(job, "outcome", None):
        return _ended(outcome)
    if entry := getattr(job, "entry", None):
        return _dispatched(entry)
    if timer := getattr(job, "timer", None):
        rows: list[tuple[str, Any]] = [
            ("Due", timer.due_at),
            ("Queue", timer.queue),
            ("Priority", timer.priority),
        ]
        return Section("Where it is", "Its timer waits for the due time.", rows)
    return Section("Where it is", "It was in motion when this page was made: load it again.", [])


def _dispatched(entry: Any) -> Section:
    note = "It waits in its queue."
    if entry.lease_token:
        note = "A worker has it."
    elif entry.parked:
        note = f"It is parked: {entry.get_parked_display()}."
    rows = [
        ("Queue", entry.queue),
        ("Runs at", entry.run_at),
        ("Waits because of", entry.get_waits_display()),
        ("Attempt", f"{entry.attempt} of {entry.max_attempts}"),
        ("Crashes", entry.crashes),
        ("Dispatched", entry.enqueued_at),
        ("Claimed", entry.claimed_at),
        ("Process", _process(entry.process_id)),
        ("Lease", entry.lease_token),
        ("Asked to stop", entry.cancel_requested or None),
    ]
    return Section("Where it is", note, [(name, value) for name, value in rows if value is not None])


def _ended(outcome: Any) -> Section:
    rows = [
        ("Attempts", f"{outcome.attempt} of {outcome.max_attempts}"),
        ("Crashes", outcome.crashes),
        ("Last start", outcome.started_at),
        ("Ended", outcome.finished_at),
        ("Process", _process(outcome.process_id)),
        ("Error", outcome.error and show.clean(outcome.error)),
        ("Fingerprint", _alike(outcome)),
    ]
    return Section(
        "Where it is",
        f"It has ended: {outcome.state}.",
        [(name, value) for name, value in rows if value is not None],
    )


def commands(actions: Iterable[OperatorAction]) -> list[Section]:
    return [
        Section(
            "Last command",
            "",
            [
                ("What", show.link("operatoraction", action.pk, show.visible(action.verb))),
                ("Who", action.actor_name),
                ("When", action.at),
                ("Reason", action.reason),
            ],
        )
        for action in actions
    ]


def _alike(outcome: Any) -> Any:
    """A link to the jobs that failed like this one."""
    if (told := outcome.error_fingerprint) is None or outcome.state != JobState.FAILED:
        return told
    return show.leading(search(error=told, due=_around(outcome.due_at)), show.visible(told))


def _around(due_at: datetime) -> str:
    """Some days, in which others of its kind will be."""
    day = timezone.localtime(due_at).date()
    return f"{day - NEAR}..{day + NEAR}"


def _process(process_id: int | None) -> Any:
    return None if process_id is None else show.link("process", process_id, process_id)
