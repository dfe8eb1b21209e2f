"""Which slots of a cron definition fire, and what becomes of the missed ones. Pure arithmetic over a parsed rule.

The work is bounded however long nothing ran: at most a thousand slots are walked, the rest is said as a range.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from jobs.cron import Recurrence
from jobs.cron.policy import MISFIRES, require_one_of

COUNT_LIMIT = 1000
"""Missed slots are counted up to here; a range of so many says "at least"."""

FIRED, LATE, MERGED, SKIPPED, MISSED = "fired", "late", "merged", "skipped", "missed"
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Firing:
    """One slot, or a range of slots that share their fate."""

    slot: datetime
    outcome: str
    reason: str = ""
    last_slot: datetime | None = None
    slots: int = 1

    @property
    def runs(self) -> bool:
        return self.outcome in (FIRED, LATE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """CronError for a misfire policy that is none."""

    misfire: str = "run_once"
    grace: timedelta = timedelta(seconds=60)
    window: timedelta = timedelta(hours=24)
    limit: int = 100

    def __post_init__(self) -> None:
        require_one_of("misfire", self.misfire, MISFIRES)


class Fate(NamedTuple):
    firings: list[Firing]
    """Oldest first."""
    reached: datetime
    """Every slot up to here is among them: the new cursor."""


def firings(rule: Recurrence, policy: Policy, *, cursor: datetime, now: datetime, until: datetime) -> Fate:
    """The fate of the slots in (cursor, until], of a thousand of them at most. Slots after `now` are written ahead.
    Those that are later than the grace period are missed: the policy decides."""
    edge = min(max(now - policy.grace, cursor), until)
    late = _late(rule, policy, cursor, edge, now)
    slots, cut = rule.between(edge, until, limit=COUNT_LIMIT)
    if late and late[-1].runs and policy.misfire == "run_once" and slots and slots[0] <= now:
        # Something is due on time as well: the missed ones are merged into it instead of running a moment before.
        late[-1] = Firing(late[-1].slot, MERGED, "a later slot was due as well")
    ahead = [Firing(slot, FIRED, _lateness(slot, now)) for slot in slots]
    return Fate(late + ahead, slots[-1] if cut else max(cursor, until))


def untold(rule: Recurrence, *, cursor: datetime, until: datetime, outcome: str, reason: str) -> list[Firing]:
    """One range for all slots in (cursor, until]; none when there are none."""
    return _range(rule, cursor, until, outcome, reason)


def _lateness(slot: datetime, now: datetime) -> str:
    """Nothing for a slot that is written ahead."""
    return "" if slot >= now else f"late by {(now - slot).total_seconds():.1f} s"


def _late(rule: Recurrence, policy: Policy, cursor: datetime, edge: datetime, now: datetime) -> list[Firing]:
    if edge <= cursor:
        return []
    horizon = max(cursor, now - policy.window)
    found: list[Firing] = []
    if horizon > cursor:
        found += _range(rule, cursor, min(horizon, edge), MISSED, "older than the catch-up window")
    if edge <= horizon:
        return found
    if policy.misfire == "skip":
        return found + _range(rule, horizon, edge, SKIPPED, "misfire policy: skip")
    if policy.misfire == "run_all":
        return found + _run_all(rule, policy, horizon, edge, now)
    last = rule.prev(edge)
    if last is None or last <= horizon:
        return found
    before = _range(rule, horizon, last - _MOMENT, MERGED, "merged into one late run")
    more = f", for {before[0].slots + 1} slots" if before else ""
    return [*found, *before, Firing(last, LATE, _lateness(last, now) + more)]


def _run_all(
    rule: Recurrence, policy: Policy, start: datetime, edge: datetime, now: datetime
) -> list[Firing]:
    """The newest up to the limit, walked back from the edge."""
    slots: list[datetime] = []
    at = edge
    while len(slots) < policy.limit and (slot := rule.prev(at)) is not None and slot > start:
        slots.append(slot)
        at = slot - _MOMENT
    slots.reverse()
    if not slots:
        return []
    dropped = _range(rule, start, slots[0] - _MOMENT, MISSED, "over the catch-up limit")
    return [*dropped, *(Firing(slot, LATE, _lateness(slot, now)) for slot in slots)]


def _range(rule: Recurrence, start: datetime, end: datetime, outcome: str, reason: str) -> list[Firing]:
    """All slots in (start, end] as one row; none when there are none."""
    if end <= start:
        return []
    found = rule.between(start, end, limit=COUNT_LIMIT)
    if not found.fires:
        return []
    last = rule.prev(end) if found.cut else found.fires[-1]
    return [Firing(found.fires[0], outcome, reason, last, len(found.fires))]
