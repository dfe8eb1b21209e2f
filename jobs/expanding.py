"""One due cron definition becomes rows: ticks, jobs, and where its cursor stands next. Writes nothing itself."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from jobs.conf import conf
from jobs.cron import Recurrence, recurrence
from jobs.firing import Firing, Policy, firings
from jobs.ids import ceil_ms, derived_id
from jobs.newjob import Row, Terms, clamp
from jobs.overlap import START, WAIT, Judged, Verdict, judge
from jobs.payload import encode
from jobs.registry import registry

POLL = timedelta(seconds=1)
"""Between two looks at a run that others wait for."""
_MOMENT = timedelta(microseconds=1)
_MS = timedelta(milliseconds=1)


class Definition(NamedTuple):
    """As `due_definitions.sql` reads it."""

    id: int
    tenant_id: int
    expression: str
    timezone: str
    dst: str
    every: timedelta | None
    anchor: datetime
    run_at: datetime | None
    job_type: str
    payload: dict[str, Any]
    queue: str | None
    priority: int
    max_attempts: int | None
    start_at: datetime | None
    end_at: datetime | None
    max_runs: int | None
    jitter: timedelta
    spread: timedelta
    misfire: str
    misfire_grace: timedelta
    catchup_window: timedelta
    catchup_limit: int
    overlap: str
    runs: int
    revision: int
    cursor: datetime
    text: str | None = None
    """The payload as JSON: one text for all its jobs, however large it is. See `with_text`."""


class Run(NamedTuple):
    """As `cron_runs.sql` reads it: a run under an overlap policy, or a start that waits."""

    definition_id: int
    tick_id: UUID
    slot: datetime
    revision: int
    job_id: UUID | None
    asked: bool
    """By a backfill: its row comes on top of the slot's own."""


@dataclass(slots=True)
class Tick:
    id: UUID
    definition_id: int
    revision: int
    firing: Firing
    outcome: str
    reason: str
    job_id: UUID | None = None
    row: Row | None = None
    """The job to insert, when the tick is new."""
    exclusive: bool = False
    """Others of its definition wait for it, or it waits for others."""
    asked: bool = False


@dataclass(slots=True)
class Expanded:
    last_slot: datetime
    """The cursor: nothing up to here is left to tell."""
    ticks: list[Tick] = field(default_factory=list)
    retold: list[Tick] = field(default_factory=list)
    """Starts that waited, and what became of them."""
    cancel: list[UUID] = field(default_factory=list)
    next_slot: datetime | None = None
    look_at: datetime | None = None
    runs: int = 0
    broken: str = ""


@lru_cache(maxsize=4096)
def _rule(
    expression: str,
    tz: str,
    dst: str,
    every: timedelta | None,
    anchor: datetime | None,
    run_at: datetime | None,
) -> Recurrence:
    return recurrence(expression=expression, tz=tz, dst=dst, every=every, anchor=anchor, run_at=run_at)


def rule_of(
    expression: str, tz: str, dst: str, every: timedelta | None, anchor: datetime, run_at: datetime | None
) -> Recurrence:
    """Parsed once for all definitions that say the same; CronError for a wrong one."""
    return _rule(expression, tz, dst, every, None if every is None else anchor, run_at)


def with_text(definition: Definition) -> Definition:
    """InvalidPayload for a payload that cannot be stored any more."""
    return definition._replace(text=encode(definition.payload, limit=conf().payload_bytes))


def expand(definition: Definition, now: datetime, runs: Sequence[Run]) -> Expanded:
    """`runs`: its unfinished runs and waiting starts, oldest first. CronError, ValueError or OverflowError for a
    definition that cannot be expanded."""
    rule = rule_of(*definition[2:8])
    ahead = definition.overlap == "allow_all"
    found, reached = _firings(rule, definition, now, now + conf().cron_ahead if ahead else now)
    made = Expanded(last_slot=reached)
    if _is_spent(definition, made):  # no later slot overtakes the last start that waits
        found = []
    running = [run for run in runs if run.job_id is not None]
    waiting = [run for run in runs if run.job_id is None]
    if waiting or any(each.runs for each in found):
        definition = with_text(definition)
    judged = judge(
        definition.overlap, [each for each in found if each.runs], busy=bool(running), waiting=len(waiting)
    )
    _retell(made, definition, judged, waiting, now)
    made.runs -= sum(not run.asked for run in waiting[: judged.overtaken])  # counted when they began to wait
    verdicts = iter(judged.verdicts)
    for firing in found:
        if _is_spent(definition, made):
            break
        tick = _tick(rule, definition, firing, next(verdicts) if firing.runs else None, now)
        if tick.outcome == "skipped" and firing.runs and running:
            tick.job_id = running[-1].job_id
        made.ticks.append(tick)
        made.runs += tick.row is not None or tick.outcome == "waiting"
    made.cancel = [run.job_id for run in running if run.job_id] if judged.cancel else []
    _look_ahead(made, rule, definition, now, ahead=ahead)
    still = len(waiting) - len(made.retold) + sum(tick.outcome == "waiting" for tick in made.ticks)
    if still:
        made.look_at = min(made.look_at or now + POLL, now + POLL)
    return made


def _firings(
    rule: Recurrence, definition: Definition, now: datetime, until: datetime
) -> tuple[list[Firing], datetime]:
    cursor, end = max(definition.cursor, clamp(definition.cursor, now)), definition.end_at
    if definition.start_at is not None:  # a slot at the very start counts
        cursor = max(cursor, definition.start_at - _MOMENT)
    policy = Policy(
        misfire=definition.misfire,
        grace=definition.misfire_grace,
        window=definition.catchup_window,
        limit=definition.catchup_limit,
    )
    stop = until if end is None else min(until, end)
    if stop <= cursor:
        return [], max(definition.cursor, until)
    found, reached = firings(rule, policy, cursor=cursor, now=now, until=stop)
    return found, max(definition.cursor, until if reached >= stop else reached)


def _is_spent(definition: Definition, made: Expanded) -> bool:
    return definition.max_runs is not None and definition.runs + made.runs >= definition.max_runs


def _look_ahead(
    made: Expanded, rule: Recurrence, definition: Definition, now: datetime, *, ahead: bool
) -> None:
    """Where it goes on. Nowhere when its runs are used up, its end is reached, or the rule has no more slots."""
    if _is_spent(definition, made):
        last = [tick.firing.last_slot or tick.firing.slot for tick in made.ticks]
        made.last_slot = max([definition.cursor, *last])
        return
    after = made.last_slot
    if definition.start_at is not None:
        after = max(after, definition.start_at - _MOMENT)
    slot = rule.next(after)
    if slot is None or (definition.end_at is not None and slot > definition.end_at):
        return
    made.next_slot = slot
    made.look_at = slot - conf().cron_ahead if ahead else slot


def _tick(
    rule: Recurrence, definition: Definition, firing: Firing, verdict: Verdict | None, now: datetime
) -> Tick:
    tick = Tick(
        tick_id(definition.id, definition.revision, firing.slot),
        definition.id,
        definition.revision,
        firing,
        firing.outcome,
        firing.reason,
    )
    if verdict is None:
        return tick
    tick.exclusive = definition.overlap != "allow_all"
    if verdict.what == START:
        tick.row = job_row(definition, firing.slot, now, delay=_delay(rule, definition, firing.slot))
        tick.job_id = tick.row.id
    else:
        tick.outcome = "waiting" if verdict.what == WAIT else "skipped"
        tick.reason = verdict.reason
    return tick


def _retell(
    made: Expanded, definition: Definition, judged: Judged, waiting: Sequence[Run], now: datetime
) -> None:
    """What becomes of the starts that wait: the oldest begins, or gives way."""
    for run in waiting[: judged.overtaken]:
        outcome, reason = "backfilled" if run.asked else "skipped", "overlap: a later slot came as well"
        made.retold.append(
            Tick(run.tick_id, definition.id, run.revision, Firing(run.slot, outcome), outcome, reason)
        )
    if judged.start_waiting:
        run, late = waiting[0], now - waiting[0].slot
        outcome = "backfilled" if run.asked else "late"
        reason = "" if run.asked else f"late by {late.total_seconds():.1f} s: waited for an earlier run"
        row = job_row(
            definition, run.slot, now, revision=run.revision, delay=late if run.asked else timedelta()
        )
        made.retold.append(
            Tick(
                run.tick_id,
                definition.id,
                run.revision,
                Firing(run.slot, outcome),
                outcome,
                reason,
                row.id,
                row,
                exclusive=True,
                asked=run.asked,
            )
        )


def tick_id(definition_id: int, revision: int, slot: datetime) -> UUID:
    """The one id of this slot under this revision: two tickers collide."""
    return derived_id(slot, "tick", definition_id, revision, slot.isoformat())


def job_row(
    definition: Definition,
    slot: datetime,
    now: datetime,
    *,
    delay: timedelta = timedelta(),
    revision: int | None = None,
) -> Row:
    """The job of a slot. An unknown type is no error here: the job waits, parked, for a worker that knows it."""
    known = registry.get(definition.job_type)
    due_at = ceil_ms(clamp(slot + delay, now))
    terms = Terms(
        "",
        definition.job_type,
        definition.queue or (known.queue if known else definition.job_type),
        definition.priority,
        None,
        definition.max_attempts or (known.max_attempts if known else conf().max_attempts),
        definition.tenant_id,
    )
    return Row(
        derived_id(due_at, "job", definition.id, revision or definition.revision, slot.isoformat()),
        due_at,
        terms,
        definition.text or encode(definition.payload, limit=conf().payload_bytes),
        cron_id=definition.id,
        slot=slot,
    )


def _delay(rule: Recurrence, definition: Definition, slot: datetime) -> timedelta:
    """Spread, the same for all slots of a definition, and jitter, the same whoever works it out; before the next slot."""
    if not definition.spread and not definition.jitter:
        return timedelta()
    delay = _share(definition.spread, definition.id) + _share(definition.jitter, definition.id, slot)
    following = rule.next(slot)
    return delay if following is None else max(timedelta(), min(delay, following - slot - _MS))


def _share(most: timedelta, *parts: object) -> timedelta:
    """A part of `most`, at least nothing and less than all, as a hash says."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return most * (int.from_bytes(digest[:4]) / 2**32)
