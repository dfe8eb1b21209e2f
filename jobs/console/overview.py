"""The overview: is everything on time, and if not, what stands in the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest

from jobs import clock, rollups
from jobs.console import course, errors, fleet, forecast, health, show
from jobs.console.amounts import Count, lasting, many
from jobs.console.queues import NAMES, QueueLine, queue_lines
from jobs.console.reading import rows
from jobs.console.remember import remembered
from jobs.console.sections import address, named
from jobs.console.types import CAP
from jobs.models import OperationState
from jobs.models.rollup import Kind
from jobs.operations.control import visible
from jobs.operations.limits import APPROVE
from jobs.scope import slugs_of
from jobs.sql import load
from jobs.triage import BACK

FULL, ASKED = 20, 100
SHOWN = 8
"""Queues that the overview lists, the worst first."""


@dataclass(frozen=True)
class Problem:
    """One thing that burns, or will: "alarm" or "warning", where to see it and what it is."""

    state: str
    told: str
    url: str = ""
    link: str = ""


@dataclass(frozen=True)
class FullTenant:
    pk: int
    slug: str
    max_running: int
    running: int


@dataclass(frozen=True)
class Pulse:
    """What may stand in the way."""

    now: datetime
    workers: int
    dispatchers: int
    lost: int
    ever: bool
    """Some process ran in the last day."""
    oldest: datetime | None
    """The timer that dispatch should have moved first."""
    full: Sequence[FullTenant]
    """Those that run as many jobs as they may."""
    parked: Sequence[tuple[str, Count]]
    """Jobs of types that no live worker knows."""
    asked: Sequence[tuple[int, int | None]]
    """Operations that ask for approval, and who started each."""

    @property
    def lag(self) -> timedelta | None:
        return None if self.oldest is None else max(self.now - self.oldest, timedelta())


@remembered(3)
def pulse(using: str = "default") -> Pulse:
    now = clock.now(using)
    values = {"start": now - fleet.LOOK_BACK, "end": now, "full": FULL, "cap": CAP, "asked": ASKED}
    ((moment, workers, dispatchers, lost, ever, oldest, full, parked, asked),) = rows(
        load("console/pulse"), values, using
    )
    tenants = [FullTenant(*each) for each in full]
    types = [(name, Count(jobs, CAP)) for name, jobs in parked]
    return Pulse(moment, workers, dispatchers, lost, ever, oldest, tenants, types, asked)


@dataclass(frozen=True)
class Head:
    """What the head of the page says."""

    pulse: Pulse
    queues: Sequence[QueueLine]

    @property
    def waiting(self) -> Count:
        counts = [line.waiting for line in self.queues]
        waiting = sum(count.value for count in counts)
        return Count(waiting, waiting if any(count.is_capped for count in counts) else None)

    @property
    def running(self) -> int:
        return sum(line.running for line in self.queues)

    @property
    def oldest(self) -> QueueLine | None:
        waits = [line for line in self.queues if line.oldest is not None]
        return max(waits, key=lambda line: line.wait or timedelta(), default=None)

    @property
    def ever(self) -> bool:
        """Something has been scheduled, or some process ran, in the last day."""
        return self.pulse.ever or any(line.waiting or line.later or line.running for line in self.queues)


def gather(request: HttpRequest) -> dict[str, Any]:
    """Of everything; for who sees some tenants alone, of these."""
    if (slugs := slugs_of(request.user)) is not None:
        return _own(request, tuple(slugs))
    head = Head(pulse(), queue_lines()[:NAMES])
    failed = errors.failures("1h")
    told = course.course(Kind.ALL, "", request.GET.get("span", ""))
    ahead = forecast.forecast()
    user = request.user
    asked = [pk for pk, author in head.pulse.asked if author != user.pk] if _may_approve(user) else []
    problems = [*_problems(head, failed, told, ahead), *_of_approvals(asked)]
    problems.sort(key=lambda problem: problem.state)
    worst = sorted(head.queues, key=_urgency)[:SHOWN]
    return {
        "head": head,
        "pulse": head.pulse,
        "problems": problems,
        "state": problems[0].state if problems else "ok",
        "course": told,
        "spans": list(course.SPANS),
        "flow": told.flow(),
        "lateness": told.lateness(),
        "ahead": ahead,
        "ahead_chart": forecast.chart(ahead),
        "failed": failed,
        "groups": failed.groups[:5],
        "lines": worst,
        "more": max(len(head.queues) - len(worst), 0),
    }


def _own(request: HttpRequest, slugs: tuple[str, ...]) -> dict[str, Any]:
    told = course.course(Kind.ALL, "", request.GET.get("span", ""), slugs)
    ahead = forecast.forecast(slugs)
    asked = visible(request.user).filter(state=OperationState.ASKED).exclude(author_id=request.user.pk)
    found = asked.order_by("pk").values_list("pk", flat=True)[:ASKED] if _may_approve(request.user) else []
    return {
        "own": True,
        "slugs": slugs,
        "problems": list(_of_approvals(list(found))),
        "standing": rollups.backlog(Kind.ALL, slugs=slugs).get("", rollups.Standing("")),
        "course": told,
        "spans": list(course.SPANS),
        "flow": told.flow(),
        "lateness": told.lateness(),
        "ahead": ahead,
        "ahead_chart": forecast.chart(ahead),
    }


def _urgency(line: QueueLine) -> tuple[bool, bool, timedelta, int, str]:
    """Sorts what needs a look to the front."""
    wait = line.wait or timedelta()
    return (not line.is_unserved, not line.is_late, -wait, -line.running - line.waiting.value, line.name)


def _problems(
    head: Head, failed: errors.Failures, told: course.Course, ahead: forecast.Forecast
) -> Iterator[Problem]:
    yield from _of_processes(head)
    yield from _of_numbers(head.pulse, told, ahead)
    yield from _of_queues(head.queues)
    yield from _of_held(head.queues)
    yield from _of_types(head.pulse)
    yield from _of_days()
    for tenant in head.pulse.full[:3]:
        text = f"Tenant {show.visible(tenant.slug)} runs {tenant.running} of {tenant.max_running} jobs: others of its wait."
        if tenant.max_running == 0:
            text = f"Tenant {show.visible(tenant.slug)} may run no job: its limit is 0."
        yield Problem("warning", text, address("jobs_tenant_change", object_id=tenant.pk), "its limits")
    yield from _of_errors(failed)


def _may_approve(user: Any) -> bool:
    return bool(user.has_perm(APPROVE) and user.has_perm("jobs.view_operation"))


def _of_approvals(found: Sequence[int]) -> Iterator[Problem]:
    """What others have asked for and this user may see and approve."""
    if found:
        told = f"{many(Count(len(found), ASKED), 'operation waits', 'operations wait')} for your approval."
        first = address("jobs_operation_change", object_id=found[0])
        yield Problem("warning", told, first, "the first" if len(found) > 1 else "it")


def _of_errors(failed: errors.Failures) -> Iterator[Problem]:
    """What nobody has dealt with; groups that are known, ignored or mended are no problem."""
    if not failed.news:
        return
    dealt_with = len(failed.groups) - len(failed.news)
    count = Count(sum(group.count for group in failed.news)) if dealt_with else failed.count
    text = f"{many(count, 'job')} failed in the last hour, in {many(len(failed.news), 'way')}"
    if dealt_with:
        text += f" that nobody has dealt with; {many(dealt_with, 'way is', 'ways are')} known"
    if back := sum(group.standing == BACK for group in failed.news):
        text += f"; {many(back, 'one was', 'were')} said to be mended"
    yield Problem("warning", f"{text}.", address("jobs_job_errors") + "?span=1h", "errors")


def _of_processes(head: Head) -> Iterator[Problem]:
    now = head.pulse
    workers, dispatchers = address("jobs_process_workers"), address("jobs_process_dispatchers")
    if not now.dispatchers and head.ever:
        yield Problem("alarm", "No dispatcher is alive: nothing new comes due.", dispatchers, "dispatchers")
    if not now.workers and (head.waiting or head.running):
        told = f"No worker is alive; {many(head.waiting, 'job is', 'jobs are')} due."
        yield Problem("alarm", told, workers, "workers")
    if now.lag is not None and now.lag > timedelta(seconds=10):
        yield Problem("alarm", f"Dispatch is {lasting(now.lag)} behind.", dispatchers, "dispatchers")
    if now.lost:
        told = f"{many(now.lost, 'process was', 'processes were')} lost without a word in the last day."
        yield Problem("warning", told, workers, "workers")


def _of_numbers(now: Pulse, told: course.Course, ahead: forecast.Forecast) -> Iterator[Problem]:
    if told.is_old and now.dispatchers:
        reached = told.series.as_of
        since = f"since {lasting(now.now - reached)}" if reached else "yet"
        text = f"The numbers below have not been counted {since}: a dispatcher counts them."
        yield Problem("warning", text, address("jobs_process_dispatchers"), "dispatchers")
    elif not told.is_punctual and told.span == course.DEFAULT:
        text = f"Only {told.on_time} of the jobs of the last 5 minutes started within 5 s of their due time."
        yield Problem("warning", text)
    if ahead.over:
        text = f"In {many(ahead.over, 'minute')} of the next hour more jobs come due than were ever managed in a minute."
        yield Problem("warning", text, address("jobs_job_forecast"), "forecast")


def _of_queues(lines: Sequence[QueueLine]) -> Iterator[Problem]:
    late = sorted((line for line in lines if line.is_late or line.is_unserved), key=_urgency)
    for line in late[:5]:
        name, url = show.visible(line.name), named("jobs_queue_one", line.name)
        if line.is_unserved:
            told = f"Queue {name}: {many(line.waiting, 'job is', 'jobs are')} due and no worker serves it."
            yield Problem("alarm", told, url, "queue")
        else:
            yield Problem(
                "alarm",
                f"Queue {name} is late: its oldest job has waited {lasting(line.wait)}.",
                url,
                "queue",
            )
    if len(late) > 5:
        yield Problem(
            "alarm",
            f"{many(len(late) - 5, 'more queue is', 'more queues are')} late.",
            address("jobs_queue_changelist"),
            "queues",
        )


def _of_held(lines: Sequence[QueueLine]) -> Iterator[Problem]:
    """A hold that was forgotten."""
    waits = [line.wait for line in lines if line.wait and line.waits_long and line.is_held]
    if waits:
        queues = many(len(waits), "held queue has", "held queues have")
        told = f"{queues} jobs due, the oldest for {lasting(max(waits))}."
        yield Problem("warning", told, address("jobs_hold_changelist"), "holds")


def _of_types(now: Pulse) -> Iterator[Problem]:
    for name, jobs in now.parked[:3]:
        told = f"{many(jobs, 'job')} of type {show.visible(name)} parked: no live worker knows it."
        yield Problem("warning", told, named("jobs_job_type", name), "type")


def _of_days() -> Iterator[Problem]:
    ready = health.ready_days()
    if ready is None:
        yield Problem(
            "warning", "The days of the tables could not be read.", address("jobs_job_health"), "health"
        )
    elif ready < health.READY:
        told = f"Only {many(ready, 'day is', 'days are')} ready: jobs due later cannot be scheduled."
        yield Problem("alarm", told, address("jobs_job_health"), "health")
