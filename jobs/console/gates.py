"""Why a job waits, as a list of gates: each that a claim asks of it, open or shut, and where to change that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.console import show
from jobs.console.sections import address, named
from jobs.rules import Reason
from jobs.why import Why

GATES = (
    ("Its time", ("not_due", "backoff", "snoozed", "no_dispatcher")),
    ("Holds", ("paused_all", "paused_queue", "paused_tenant", "held", "held_type", "held_group")),
    ("Concurrency key", ("concurrency_key",)),
    ("Tenant's limits", ("tenant_limit", "tenant_queue_limit")),
    ("Tenant's rate", ("tenant_rate",)),
    ("Queue's limit", ("queue_limit",)),
    ("Queue's rate", ("queue_rate", "draining")),
    ("Workers", ("no_worker_for_type", "no_worker_for_queue")),
)
"""In the order in which they are told; each with the codes of the reasons that shut it."""


@dataclass(frozen=True)
class Gate:
    name: str
    is_open: bool
    told: str
    until: datetime | None = None
    url: str = ""
    link: str = ""


@dataclass(frozen=True)
class Panel:
    """`style` is "holds" for what somebody should look at, "waits" for what time alone does, empty for nothing."""

    title: str
    told: str
    style: str
    until: datetime | None
    url: str
    link: str
    gates: Sequence[Gate]
    notes: Sequence[str]


def panel(found: Why, job: Any) -> Panel:
    """What the page of a job says first. All gates were asked of a job that waits in its queue; of others only where
    they are."""
    head = found.headline
    waits = getattr(job, "entry", None) is not None and job.entry.lease_token is None
    url, link = fix(head, job)
    return Panel(
        title=_title(head),
        told=_sentence(head.text),
        style=_style(head),
        until=head.until,
        url=url,
        link=link,
        gates=_gates(found, job) if waits else [],
        notes=[_sentence(reason.text) for reason in found.reasons if not reason.blocks],
    )


def fix(reason: Reason, job: Any) -> tuple[str, str]:
    """Where what the reason tells of can be changed, and what that page is called."""
    code = reason.code
    if code.startswith("tenant_"):
        return address("jobs_tenant_change", object_id=job.tenant_id), "its limits"
    if code.startswith(("paused_", "held")):
        return address("jobs_hold_changelist"), "holds"
    if code in ("queue_limit", "queue_rate", "draining"):
        return named("jobs_queue_one", job.queue), "the queue"
    if code.startswith("no_worker"):
        return address("jobs_process_workers"), "workers"
    if code == "no_dispatcher":
        return address("jobs_process_dispatchers"), "dispatchers"
    return "", ""


def _gates(found: Why, job: Any) -> list[Gate]:
    """All of GATES; whatever else is shut comes last, so that none is passed over."""
    known = {code for _, codes in GATES for code in codes}
    others = sorted({reason.code for reason in found.reasons if reason.blocks} - known)
    named = [*GATES, *((code.replace("_", " ").capitalize(), (code,)) for code in others)]
    return [_gate(name, codes, found, job) for name, codes in named]


def _gate(name: str, codes: Sequence[str], found: Why, job: Any) -> Gate:
    shut = [reason for reason in found.reasons if reason.code in codes and reason.blocks]
    if not shut:
        return Gate(name, True, "open")
    url, link = fix(shut[0], job)
    return Gate(
        name, False, "; ".join(_sentence(reason.text, "") for reason in shut), shut[0].until, url, link
    )


def _title(head: Reason) -> str:
    if head.code == "running":
        return "It runs"
    return "Nothing holds it" if head.code == "runnable" else "Why it waits"


def _style(head: Reason) -> str:
    if head.code in ("runnable", "running", "in_motion"):
        return ""
    return "waits" if head.code in ("not_due", "backoff", "snoozed", "draining") else "holds"


def _sentence(text: str, end: str = ".") -> str:
    text = show.clean(text)
    return text[:1].upper() + text[1:] + end
