"""The life of one job in the order of time: asked for, dispatched, tried, ended, and what people did to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from jobs.console import show
from jobs.console.amounts import lasting
from jobs.console.sections import address
from jobs.models import Attempt, OperatorAction
from jobs.states import JobState


@dataclass(frozen=True)
class Event:
    """One thing that happened, or will; `style` is "good", "bad", "person" or empty."""

    at: datetime
    told: str
    more: str = ""
    style: str = ""
    url: str = ""
    link: str = ""


def events(job: Any, attempts: Sequence[Attempt], actions: Sequence[OperatorAction]) -> list[Event]:
    """Oldest first; where two are of the same moment, in the order in which they must have come."""
    last = getattr(getattr(job, "outcome", None), "lease_token", None)  # its end is told as that of the job
    tried = [each for each in attempts if last is None or each.lease_token != last]
    found = [*_asked(job), *_tried(tried), *_place(job), *map(_commanded, actions)]
    return sorted(found, key=lambda event: event.at)


def _asked(job: Any) -> Iterator[Event]:
    by = f"by cron definition {job.cron_id}" if job.cron_id else ""
    yield Event(job.created_at, "Scheduled", by)
    if job.due_at - job.created_at >= timedelta(seconds=1):
        yield Event(job.due_at, "Due", f"{lasting(job.due_at - job.created_at)} after it was scheduled")


def _tried(attempts: Sequence[Attempt]) -> Iterator[Event]:
    for each in attempts:
        ran = f" after {lasting(each.finished_at - each.started_at)}" if each.started_at else ""
        told = f"Attempt {each.attempt} did not end well{ran}"
        more = f"{show.clean(each.error_class)}: {show.clean(each.message)[:300]}"
        url = address("jobs_process_change", object_id=each.process_id) if each.process_id else ""
        yield Event(each.finished_at, told, more, "bad", url, f"process {each.process_id}")


def _place(job: Any) -> Iterator[Event]:
    if entry := getattr(job, "entry", None):
        yield Event(entry.enqueued_at, "Dispatched to its queue", show.visible(entry.queue))
        if entry.lease_token:
            url = address("jobs_process_change", object_id=entry.process_id)
            yield Event(
                entry.claimed_at,
                f"Claimed for attempt {entry.attempt}",
                "",
                "",
                url,
                f"process {entry.process_id}",
            )
        elif entry.waits:
            yield Event(
                entry.run_at, "Next attempt" if entry.waits == "retry" else "Runs", entry.get_waits_display()
            )
    if outcome := getattr(job, "outcome", None):
        yield from _ended(outcome)


def _ended(outcome: Any) -> Iterator[Event]:
    if outcome.started_at:
        yield Event(outcome.started_at, f"Attempt {outcome.attempt} started")
    style = {JobState.COMPLETED: "good", JobState.FAILED: "bad"}.get(outcome.state, "person")
    ran = f"after {lasting(outcome.finished_at - outcome.started_at)}" if outcome.started_at else ""
    more = show.clean(outcome.error)[:300] if outcome.error else ran
    url = address("jobs_process_change", object_id=outcome.process_id) if outcome.process_id else ""
    yield Event(
        outcome.finished_at,
        str(outcome.state).capitalize(),
        more,
        style,
        url,
        f"process {outcome.process_id}",
    )


def _commanded(action: OperatorAction) -> Event:
    told = f"{show.visible(action.verb).capitalize()} by {show.visible(action.actor_name)}"
    url = address("jobs_operatoraction_change", object_id=action.pk)
    others = f"with {action.matched - 1:,} others" if action.matched > 1 else ""
    more = ", ".join(filter(None, [show.clean(action.reason), others]))
    return Event(action.at, told, more, "person", url, "audit")
