"""Reconcile the cron ledger with the calendar and the jobs: each expected slot has one row, each row its slot and job.

The calendar is jobs.almanac's, not the tickers'. Only what fails in two looks is reported, because tickers go on
meanwhile.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import QuerySet

from jobs import clock
from jobs.almanac import expected
from jobs.conf import conf
from jobs.ids import due_of
from jobs.models import CronDefinition, CronRevision, CronTick, Job

T = TypeVar("T")
LAG = timedelta(seconds=60)
"""A slot older than this must have its row."""
BATCH = 50
"""Definitions in one look."""
ROWS = 100_000
"""Fewer of them when they have so many rows in the ledger."""
MOST = 10_000
"""Breaches that are told; whoever has so many looks for their cause, not for the next one."""
AT_LEAST = 1000
"""A range row of so many slots says "at least"."""
WITH_JOB = {"fired", "late", "backfilled", "manual"}
ON_TOP = {"backfilled", "manual"}
"""Rows for runs that somebody asked for."""


@dataclass
class Findings:
    breaches: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What an operator should know and is no breach: definitions that are broken."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """Slots by outcome."""
    definitions: int = 0
    expected: int = 0

    @property
    def clean(self) -> bool:
        return not self.breaches


@dataclass(frozen=True)
class Rule:
    """One revision of a definition, in force in (since, until]."""

    definition_id: int
    revision: int
    values: tuple[Any, ...]
    start_at: datetime | None
    end_at: datetime | None
    since: datetime
    until: datetime

    def slots(self, since: datetime) -> list[datetime]:
        expression, tz, dst, every, anchor, run_at = self.values
        start, end = max(self.since, since), min(self.until, self.end_at or self.until)
        found = expected(
            expression=expression,
            tz=tz,
            dst=dst,
            every=every,
            anchor=anchor,
            run_at=run_at,
            start=start,
            end=end,
        )
        return [slot for slot in found if self.start_at is None or slot >= self.start_at]


def reconcile(
    since: datetime | None = None,
    using: str = "default",
    *,
    now: datetime | None = None,
    span: timedelta = timedelta(hours=1),
) -> Findings:
    """`since`: look at slots later than this (default: a day ago); never further back than the ledger is kept. `span`:
    how much of due time one statement looks at."""
    now = now or clock.now(using)
    oldest = now - conf().retention + timedelta(days=2)
    since = max(since or now - timedelta(days=1), oldest)
    findings = Findings()
    ids = set(
        CronRevision.objects.using(using).filter(until__gt=since).values_list("definition_id", flat=True)
    )
    ids |= set(CronDefinition.objects.using(using).values_list("id", flat=True).iterator())
    findings.definitions = len(ids)
    for chunk in _chunks(sorted(ids), BATCH):
        for piece in _pieces(chunk, since, now, using):
            found = _look(piece, since, now, using, findings)
            if found:
                found &= _look(piece, since, now, using, Findings())
            findings.breaches += sorted(found)
            if len(findings.breaches) >= MOST:
                findings.breaches.append("and perhaps more: the definitions after these were not looked at")
                return findings
    findings.breaches += _stray_jobs(since, now, using, span)
    return findings


def _pieces(chunk: list[int], since: datetime, now: datetime, using: str) -> Iterator[list[int]]:
    """Definitions that have few enough rows in the ledger to be looked at together."""
    if len(chunk) == 1 or _ticks(chunk, since, now, using)[:ROWS].count() < ROWS:
        yield chunk
    else:
        middle = len(chunk) // 2
        yield from _pieces(chunk[:middle], since, now, using)
        yield from _pieces(chunk[middle:], since, now, using)


def _ticks(chunk: Sequence[int], since: datetime, now: datetime, using: str) -> QuerySet[CronTick]:
    return CronTick.objects.using(using).filter(
        definition_id__in=chunk, slot__gt=since, slot__lt=now + timedelta(days=2)
    )


def _look(chunk: Sequence[int], since: datetime, now: datetime, using: str, findings: Findings) -> set[str]:
    ticks: dict[tuple[int, int], list[CronTick]] = defaultdict(list)
    rules = list(_rules(chunk, since, now, using, findings))
    all_ticks = list(_ticks(chunk, since, now, using))
    for tick in all_ticks:
        ticks[tick.definition_id, tick.revision].append(tick)
        findings.outcomes[tick.outcome] += tick.slots
    found = _jobs_of((tick for tick in all_ticks if tick.outcome in WITH_JOB), using)
    for rule in rules:
        mine = ticks.pop((rule.definition_id, rule.revision), [])
        try:
            slots = rule.slots(since)
        except (ValueError, KeyError) as error:
            findings.notes.append(f"definition {rule.definition_id} cannot be read: {error}")
            continue
        findings.expected += len(slots)
        found |= _compare(rule, slots, [tick for tick in mine if tick.outcome not in ON_TOP], since, using)
    return found | {
        f"wrong: {_name(definition_id, tick.slot)}, of revision {revision}, which never was"
        for (definition_id, revision), left in ticks.items()
        for tick in left
        if tick.outcome not in ON_TOP
    }


def _rules(
    chunk: Sequence[int], since: datetime, now: datetime, using: str, findings: Findings
) -> Iterator[Rule]:
    for old in CronRevision.objects.using(using).filter(definition_id__in=chunk, until__gt=since):
        told = old.settled or now - old.until > LAG
        until = old.until if told else min(old.cursor, old.until)
        yield _rule(old, old.definition_id, old.anchor_at, old.since, until)
    for new in CronDefinition.objects.using(using).filter(pk__in=chunk):
        cursor = new.last_slot or new.created_at
        anchor = new.anchor_at or new.start_at or new.created_at
        spent = new.look_at is None or (new.max_runs is not None and new.runs >= new.max_runs)
        goes_on = new.enabled and not new.broken and not spent
        yield _rule(new, new.pk, anchor, new.revised_at, max(cursor, now - LAG) if goes_on else cursor)
        if new.broken:
            findings.notes.append(f"definition {new.pk} ({new.name}) does not fire: {new.broken}")


def _rule(row: Any, definition_id: int, anchor: Any, since: datetime, until: datetime) -> Rule:
    values = (row.expression, row.timezone, row.dst, row.every, anchor, row.run_at)
    return Rule(definition_id, row.revision, values, row.start_at, row.end_at, since, until)


def _compare(
    rule: Rule, slots: list[datetime], ticks: Iterable[CronTick], since: datetime, using: str
) -> set[str]:
    found, covered = set[str](), Counter[datetime]()
    for tick in ticks:
        if tick.slot > rule.until and tick.outcome == "replaced":
            continue
        if tick.slot > rule.since:
            found |= _cover(rule, slots, tick, covered)
    missing = [slot for slot in slots if not covered[slot]]
    if missing:  # perhaps by a range that begins before
        ranges = CronTick.objects.using(using).filter(
            definition_id=rule.definition_id,
            revision=rule.revision,
            slot__lte=since,
            slot__gt=since - conf().retention,
            last_slot__gt=since,
        )
        for tick in ranges:
            covered.update(slot for slot in slots if tick.last_slot and slot <= tick.last_slot)
    found |= {f"missing: {_name(rule.definition_id, slot)}" for slot in slots if not covered[slot]}
    return found | {
        f"doubled: {_name(rule.definition_id, slot)}" for slot, times in covered.items() if times > 1
    }


def _cover(rule: Rule, slots: list[datetime], tick: CronTick, covered: Counter[datetime]) -> set[str]:
    first, last = bisect_left(slots, tick.slot), bisect_right(slots, tick.last_slot or tick.slot)
    inside = slots[first:last]
    name = _name(rule.definition_id, tick.slot)
    covered.update(inside)
    if tick.slot not in inside or (tick.last_slot or tick.slot) not in inside:
        return {f"wrong: {name}, where the calendar has no slot"}
    if tick.slots != min(len(inside), AT_LEAST):
        return {f"wrong: {name}, a range that says {tick.slots} slots and has {len(inside)}"}
    return set()


def _jobs_of(ticks: Iterable[CronTick], using: str) -> set[str]:
    found = set[str]()
    for rows in _chunks(ticks, 500):
        wanted = {row.job_id: row for row in rows if row.job_id}
        there = dict(Job.objects.using(using).filter(pk__in=list(wanted)).values_list("pk", "slot"))
        for row in rows:
            name = _name(row.definition_id, row.slot)
            if row.job_id is None and row.outcome == "backfilled":
                continue  # it waits for another, or was overtaken
            if row.job_id is None:
                found.add(f"job: {name} says {row.outcome} and names no job")
            elif row.job_id not in there:
                found.add(f"job: {name} names {row.job_id}, which does not exist")
            elif there[row.job_id] != row.slot:
                found.add(f"job: {name} names {row.job_id}, which is of slot {there[row.job_id]}")
    return found


def _stray_jobs(since: datetime, now: datetime, using: str, span: timedelta) -> list[str]:
    """Jobs of cron definitions that no row of the ledger names."""
    found = set[str]()
    start = since
    while start < now + timedelta(days=1):
        end = start + span
        jobs = list(
            Job.objects.using(using)
            .filter(due_at__gte=start, due_at__lt=end, cron_id__isnull=False, slot__gt=since)
            .values_list("pk", "cron_id", "slot")
        )
        for chunk in _chunks(jobs, 500):
            found |= _unnamed(chunk, using)
        start = end
    return sorted(found)


def _unnamed(jobs: Sequence[tuple[UUID, int, datetime]], using: str) -> set[str]:
    ticks = CronTick.objects.using(using).filter(
        definition_id__in={cron_id for _, cron_id, _ in jobs}, slot__in={slot for _, _, slot in jobs}
    )
    named = set(ticks.values_list("job_id", flat=True))
    return {
        f"job: {job_id} of {_name(cron_id, slot)}, due {due_of(job_id)}, is in no row of the ledger"
        for job_id, cron_id, slot in jobs
        if job_id not in named
    }


def _name(definition_id: int, slot: datetime) -> str:
    return f"definition {definition_id} at {slot:%Y-%m-%d %H:%M:%S%z}"


def _chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
