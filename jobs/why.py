"""Why: what keeps a job from running, asked of the rules that the claim goes by."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from operator import itemgetter
from typing import Any, LiteralString, cast
from uuid import UUID

from django.db import connections

from jobs import clock
from jobs.ids import due_of
from jobs.models.job import Job
from jobs.models.outcome import Outcome
from jobs.models.process import Process
from jobs.models.queue import Parked, QueueEntry, Waits
from jobs.models.timer import Timer
from jobs.rules import MOST_AHEAD, RULES, Case, Facts, Held, Reason, moment
from jobs.sql import load

HOLDERS = 5
"""So many of those that hold a concurrency key are named."""
_PARAMETER = re.compile(r"%\((\w+)\)s")


@dataclass(frozen=True, slots=True)
class Why:
    reasons: tuple[Reason, ...]

    @property
    def runnable(self) -> bool:
        """A claim of its queue, by a worker that knows its type, takes it now."""
        return not any(reason.blocks for reason in self.reasons)

    @property
    def headline(self) -> Reason:
        """What to deal with first."""
        return next((reason for reason in self.reasons if reason.blocks), RUNNABLE)

    def __str__(self) -> str:
        return "; ".join(reason.text for reason in (self.headline, *self.reasons[1:]))


RUNNABLE = Reason("runnable", "nothing holds it: a worker with a free thread takes it", blocks=False)
UNKNOWN = Reason("unknown", "there is no such job: it never was, or its day has been dropped")
IN_MOTION = Reason("in_motion", "it is being moved right now: ask again")


def why(job_id: UUID, using: str = "default") -> Why:
    """The reasons why this job does not run now, the first to deal with first. Reads, locks nothing; a job that moves
    while it is asked about may be found in no place, and is said to be in motion."""
    here = {"job_id": job_id, "due_at": due_of(job_id)}
    for rows in (
        Timer.objects.using(using).filter(**here),
        QueueEntry.objects.using(using).filter(job_id=job_id),
        Outcome.objects.using(using).filter(**here),
    ):
        if (place := rows.first()) is not None:
            return judge(place, using)
    known = Job.objects.using(using).filter(pk=job_id, due_at=due_of(job_id)).exists()
    return Why((IN_MOTION if known else UNKNOWN,))


def judge(place: Timer | QueueEntry | Outcome | None, using: str = "default") -> Why:
    """The same of a job whose place was read already; one more statement at most."""
    match place:
        case Timer():
            return Why((_scheduled(place, clock.now(using)),))
        case QueueEntry(lease_token=None):
            return judge_waiting([place], using)[0]
        case QueueEntry():
            return Why(tuple(_running(place, using)))
        case Outcome():
            text = f"it has ended: {place.state} at {moment(place.finished_at)}"
            return Why((Reason(place.state, text),))
        case None:
            return Why((IN_MOTION,))


def judge_waiting(entries: Sequence[QueueEntry], using: str = "default") -> list[Why]:
    """Of entries that nobody has, a handful, in their order; one statement."""
    found = zip(entries, _facts(entries, using), strict=True)
    return [Why(tuple(_waiting(entry, *read))) for entry, read in found]


def _scheduled(timer: Timer, now: datetime) -> Reason:
    due = moment(timer.due_at)
    if timer.due_at > now:
        return Reason("not_due", f"it is not due until {due}", until=timer.due_at)
    return Reason("no_dispatcher", f"it is due since {due} and no dispatcher has moved it into its queue")


def _running(entry: QueueEntry, using: str) -> Iterator[Reason]:
    now = clock.now(using)
    process = Process.objects.using(using).filter(pk=entry.process_id or 0).first()
    since = f" since {moment(entry.claimed_at)}" if entry.claimed_at else ""
    if process is None or process.lease_expires_at <= now:
        yield Reason(
            "lease_expired", f"process {entry.process_id} had it and is gone; a rescuer will take it over"
        )
    else:
        until = process.lease_expires_at
        yield Reason(
            "running",
            f"process {entry.process_id} has it{since}, its lease held until {moment(until)}",
            until=until,
        )
    if entry.cancel_requested:
        yield Reason("cancel_requested", "it was asked to stop", blocks=False)


def _waiting(entry: QueueEntry, facts: Facts, holders: Sequence[UUID], holds: list[Held]) -> Iterator[Reason]:
    if entry.run_at > facts.now:
        yield _not_due(entry)
    if entry.parked is not None:
        yield from _parked(entry, holders, holds)
    case = Case(facts, holds, entry.queue, entry.job_type)
    for rule in RULES:
        yield from rule(case)
    if entry.crashes:
        times = "once" if entry.crashes == 1 else f"{entry.crashes} times"
        yield Reason("crashed", f"its process died {times} while it ran, so it runs carefully", blocks=False)


def _not_due(entry: QueueEntry) -> Reason:
    when = moment(entry.run_at)
    match entry.waits:
        case Waits.RETRY:
            code, text = (
                "backoff",
                f"attempt {entry.attempt} of {entry.max_attempts} failed; the next is at {when}",
            )
        case Waits.SNOOZE:
            code, text = "snoozed", f"it was snoozed until {when}"
        case Waits.RESCHEDULE:
            code, text = "not_due", f"it was rescheduled to {when}"
        case _:
            code, text = "not_due", f"it is not due until {when}"
    return Reason(code, text, until=entry.run_at)


def _parked(entry: QueueEntry, holders: Sequence[UUID], holds: list[Held]) -> Iterator[Reason]:
    """Out of the ready index, and why."""
    if entry.parked == Parked.KEY:
        names = ", ".join(str(job_id) for job_id in holders)
        text = (
            f"its concurrency key {entry.concurrency_key} is taken by {names}"
            if names
            else (f"it waits to be admitted by its concurrency key {entry.concurrency_key}")
        )
        yield Reason("concurrency_key", text)
    elif entry.parked == Parked.TYPE:
        yield Reason("no_worker_for_type", f"no live worker knew the type {entry.job_type}, so it was parked")
    elif not any(hold.scope in ("type", "group") for hold in holds):
        yield Reason("held", "its type or group was paused, and it has not come back yet")


def _facts(entries: Sequence[QueueEntry], using: str) -> list[tuple[Facts, Sequence[UUID], list[Held]]]:
    """By the claim's own rules, for a claim that reaches each entry: the number before it, and it."""
    values: dict[str, Any] = {}
    for place, entry in enumerate(entries):
        values |= {f"{name}_{place}": value for name, value in _asked(entry).items()}
    with connections[using].cursor() as cursor:
        cursor.execute(_why_of(len(entries)), values)
        return [
            (Facts(*found), holders, [Held(*row[:4], *map(_time, row[4:])) for row in holds])
            for _, *found, holders, holds in sorted(cursor.fetchall(), key=itemgetter(0))
        ]


@cache
def _why_of(count: int) -> LiteralString:
    """One look at so many, each with values of its own: `%(queue_0)s` where why.sql says `%(queue)s`."""
    looks = (_PARAMETER.sub(rf"%(\1_{place})s", load("why")) for place in range(count))
    text: Any = "\nUNION ALL\n".join(
        f"SELECT {place}, look.* FROM (\n{look}) look" for place, look in enumerate(looks)
    )
    return cast(LiteralString, text)


def _asked(entry: QueueEntry) -> dict[str, Any]:
    return {
        "queue": entry.queue,
        "tenants": [entry.tenant_id],
        "oldest": [0],
        "queue_oldest": 0,
        "process_id": 0,
        "peek": True,
        "priority": entry.priority,
        "run_at": entry.run_at,
        "job_id": entry.job_id,
        "job_type": entry.job_type,
        "group": entry.group or "",
        "concurrency_key": entry.concurrency_key if entry.parked == Parked.KEY else None,
        "holders": HOLDERS,
        "most": MOST_AHEAD,
        "shares": [MOST_AHEAD + 1],
        "size": MOST_AHEAD + 1,
    }


def _time(text: str | None) -> Any:
    """Of JSON."""
    return None if text is None else datetime.fromisoformat(text)
