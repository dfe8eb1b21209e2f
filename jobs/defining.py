"""What a cron definition is checked for before it is stored: whatever a ticker would stumble over later."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from jobs import moments
from jobs.conf import conf
from jobs.cron import zone
from jobs.cron.policy import (
    LONGEST_DELAY,
    LONGEST_NOTE,
    MISFIRES,
    OVERLAPS,
    require_one_of,
    require_span,
    require_whole,
)
from jobs.cron.recurrence import LONGEST
from jobs.errors import CronError, describe
from jobs.ids import IdRun
from jobs.newjob import Frame, NewJob, prepare
from jobs.payload import encode
from jobs.slugs import name_of
from jobs.text import storable

if TYPE_CHECKING:
    from jobs.models import CronDefinition

_MOMENT = timedelta(microseconds=1)
_LONGEST = {
    "jitter": LONGEST_DELAY, "spread": LONGEST_DELAY, "misfire_grace": LONGEST, "catchup_window": LONGEST,
}  # fmt: skip


def check_rule(definition: CronDefinition, now: datetime) -> None:
    """CronError, with the field, unless the definition has one sound rule that fires at least once from `now` on."""
    _check_window(definition)
    _check_policies(definition)
    zone(definition.timezone)
    rule = definition.rule()
    after = max(now, (definition.start_at or now) - _MOMENT)
    if definition.enabled and (definition._state.adding or _is_moved_back(definition, after)):
        if definition._state.adding:  # with a cursor of its own, say by a restore, it counts from there
            after = min(after, definition.last_slot or after)
        first = rule.next(after)
        if first is None or (definition.end_at is not None and first > definition.end_at):
            field = "run_at" if definition.run_at else "end_at" if definition.end_at else "expression"
            raise CronError(field, f"it would never fire: {_why(definition, after)}")


def check_job(definition: CronDefinition, now: datetime) -> None:
    """InvalidJob, with the field, for what schedule() would refuse as well, and CronError for the definition's name."""
    try:
        name_of(definition.name, 200)
    except ValueError as error:
        raise CronError("name", str(error)) from None
    new = NewJob(
        job_type=definition.job_type,
        payload=definition.payload,
        queue=definition.queue or None,
        priority=definition.priority,
        max_attempts=definition.max_attempts,
    )
    prepare(new, Frame(now), IdRun())
    encode(definition.payload, limit=conf().payload_bytes)  # it is stored as it is, also for a dataclass


def stored_time(name: str, value: Any) -> datetime:
    """This time in UTC. CronError, in the field `name`, for one that no table takes."""
    try:
        return moments.stored(value)
    except ValueError as error:
        raise CronError(name, str(error)) from None


def _check_window(definition: CronDefinition) -> None:
    start, end, *_ = (
        None if getattr(definition, name) is None else stored_time(name, getattr(definition, name))
        for name in ("start_at", "end_at", "anchor_at", "run_at")
    )
    if start is not None and end is not None and end <= start:
        raise CronError("end_at", f"{end} is not after the start, {start}")
    for name, longest in _LONGEST.items():
        require_span(name, getattr(definition, name), longest)
    if definition.max_runs is not None:
        require_whole("max_runs", definition.max_runs, 2**31 - 1)


def _is_moved_back(definition: CronDefinition, now: datetime) -> bool:
    """To a moment that has passed. One that stands where it stood may have: it has fired."""
    moment = definition.run_at
    if moment is None or moment > now:
        return False
    stored = type(definition)._base_manager.using(definition.alias).filter(pk=definition.pk)
    return not stored.filter(run_at=moment).exists()


def _check_policies(definition: CronDefinition) -> None:
    require_one_of("misfire", definition.misfire, MISFIRES)
    require_one_of("overlap", definition.overlap, OVERLAPS)
    require_whole("catchup_limit", definition.catchup_limit, 1000)
    note: Any = definition.note
    if not isinstance(note, str) or len(note) > LONGEST_NOTE or storable(note, 4 * len(note)) != note:
        raise CronError("note", f"{describe(note)} is not text of up to {LONGEST_NOTE} characters")


def _why(definition: CronDefinition, after: datetime) -> str:
    if definition.run_at:
        return f"{definition.run_at} is not after {after:%Y-%m-%d %H:%M:%S%z}"
    return f"no slot lies between {after:%Y-%m-%d %H:%M:%S%z} and {definition.end_at or 'the end of time'}"
