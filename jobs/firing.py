"""Which slots of a cron definition fire, and what becomes of the missed ones. Pure arithmetic over a parsed rule.

The work is bounded however long nothing ran: at most a thousand slots are walked, the rest is said as a range.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.cron import Cron

COUNT_LIMIT = 1000
"""Missed slots are counted up to here; a range of so many says "at least"."""

FIRED, LATE, MERGED, SKIPPED, MISSED = "fired", "late", "merged", "skipped", "missed"


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
    misfire: str = "run_once"
    grace: timedelta = timedelta(seconds=60)
    window: timedelta = timedelta(hours=24)
    limit: int = 100


def firings(rule: Cron, policy: Policy, *, cursor: datetime, now: datetime, until: datetime) -> list[Firing]:
    """The fate of every slot in (cursor, until], oldest first. Slots after `now` are written ahead. Those that are
    later than the grace period are missed: the policy decides."""
    edge = min(max(now - policy.grace, cursor), until)
    late = _late(rule, policy, cursor, edge, now)
    ahead = [Firing(slot, FIRED) for slot in rule.between(edge, until, limit=COUNT_LIMIT).fires]
    if late and late[-1].runs and policy.misfire == "run_once" and ahead and ahead[0].slot <= now:
        # Something is due on time as well: the missed ones are merged into it instead of running a moment before.
        last = late.pop()
        late.append(Firing(last.slot, MERGED, "a later slot was due as well"))
    return late + ahead


def _late(rule: Cron, policy: Policy, cursor: datetime, edge: datetime, now: datetime) -> list[Firing]:
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
        return found + _run_all(rule, policy, horizon, edge)
    last = rule.prev(edge)
    if last is None or last <= horizon:
        return found
    before = _range(rule, horizon, last - timedelta(microseconds=1), MERGED, "merged into one late run")
    return [*found, *before, Firing(last, LATE)]


def _run_all(rule: Cron, policy: Policy, start: datetime, edge: datetime) -> list[Firing]:
    """The newest up to the limit, walked back from the edge."""
    slots: list[datetime] = []
    at = edge
    while len(slots) < policy.limit and (slot := rule.prev(at)) is not None and slot > start:
        slots.append(slot)
        at = slot - timedelta(microseconds=1)
    slots.reverse()
    if not slots:
        return []
    dropped = _range(rule, start, slots[0] - timedelta(microseconds=1), MISSED, "over the catch-up limit")
    return [*dropped, *(Firing(slot, LATE) for slot in slots)]


def _range(rule: Cron, start: datetime, end: datetime, outcome: str, reason: str) -> list[Firing]:
    """All slots in (start, end] as one row; none when there are none."""
    if end <= start:
        return []
    found = rule.between(start, end, limit=COUNT_LIMIT)
    if not found.fires:
        return []
    last = rule.prev(end) if found.cut else found.fires[-1]
    return [Firing(found.fires[0], outcome, reason, last, len(found.fires))]
