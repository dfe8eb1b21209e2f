"""Settle: record how attempts ended and give up their leases, many in one transaction.

The guard is the lease token, under the entry's row lock: a late or dead attempt writes nothing. A cancel flag decides
over every exit from running except completion. Entries are locked in id order, as by every verb.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, assert_never
from uuid import UUID

import psycopg

from jobs import arrays
from jobs.conf import conf
from jobs.ids import day_of_id
from jobs.results import Cancelled, Completed, Failed, Key, Released, Settlement, Snoozed
from jobs.session import bounded
from jobs.sql import for_day, load
from jobs.states import JobState

Connection = psycopg.Connection[Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """This attempt was the job's last."""

    state: JobState
    result: str | None = None
    error: str | None = None
    fingerprint: str | None = None
    crashes: int = 0


COMPLETED = Ended(JobState.COMPLETED)


@dataclass(frozen=True, slots=True)
class PutBack:
    """The entry waits again; `wait` None: it may run at once."""

    waits: str | None
    wait: Any
    back: int
    crashes: int = 0


Fate = Ended | PutBack


@dataclass
class Settled:
    """What was written: job id -> fate; `fenced`: what had been taken over by another process, so nothing was."""

    batch: Sequence[Settlement] = ()
    fates: dict[UUID, Fate] = field(default_factory=dict)
    fenced: set[UUID] = field(default_factory=set)

    @property
    def keys(self) -> set[Key]:
        """Concurrency keys that may have room now; also after a settle whose reply was lost. Admit after the commit."""
        return {s.held.key for s in self.batch if s.held.key is not None}

    def __or__(self, other: Settled) -> Settled:
        return Settled([*self.batch, *other.batch], self.fates | other.fates, self.fenced | other.fenced)


def settle(connection: Connection, settlements: Iterable[Settlement]) -> Settled:
    """Write all of these in one transaction. Errors of the database leave nothing written; try again."""
    batch = sorted(settlements, key=lambda s: s.held.job_id.int)
    jobs = {s.held.job_id: s for s in batch}
    if len(jobs) < len(batch):  # two leases of one job, after a lost commit: at most one of them is alive
        last = list(jobs.values())
        return settle(connection, [s for s in batch if s is not jobs[s.held.job_id]]) | settle(
            connection, last
        )
    settled = Settled(batch)
    if not batch:
        return settled
    if all(type(s.result) is Completed for s in batch) and len(days := _by_day(batch)) == 1:
        ((day, some),) = days.items()  # how most attempts end: one statement is its own transaction
        try:
            with bounded(connection):
                settled.fates = _end(connection, day, [(s, fate_of(s, cancelled=False)) for s in some])
        except psycopg.errors.UndefinedTable:  # the day was dropped by hand: are they still ours?
            settled.fates = _lock_and_write(connection, batch)
    else:
        settled.fates = _lock_and_write(connection, batch)
    if len(settled.fates) < len(batch):
        settled.fenced = _fenced(connection, [s for s in batch if s.held.job_id not in settled.fates])
    return settled


def fate_of(settlement: Settlement, *, cancelled: bool) -> Fate:
    """What becomes of a job after this result; `cancelled`: its flag, read under the entry's lock."""
    held, result = settlement.held, settlement.result
    match result:
        case Completed(result=value, note=note):
            return COMPLETED if value is None and note is None else Ended(JobState.COMPLETED, value, note)
        case Failed(error=error, final=final, crashed=crashed):
            if cancelled:
                return Ended(JobState.CANCELLED, crashes=int(crashed))
            used_up = held.attempt >= held.max_attempts
            if final or used_up or (crashed and held.crashes + 1 >= conf().max_crashes):
                text = f"{error.cls}: {error.message}" if error.message else error.cls
                return Ended(JobState.FAILED, None, text[:500], error.fingerprint, int(crashed))
            return PutBack("retry", _wait(result.after), 0, int(crashed))
        case Released(crashed=crashed):
            return Ended(JobState.CANCELLED) if cancelled else PutBack(None, None, 1, int(crashed))
        case Snoozed(delay=delay):
            return Ended(JobState.CANCELLED) if cancelled else PutBack("snooze", _wait(delay), 1)
        case Cancelled():
            return Ended(JobState.CANCELLED)
        case _:
            assert_never(result)


def _wait(asked: timedelta) -> timedelta:
    """No job waits for longer than it could be scheduled ahead: the calendar has an end, and a result that cannot be
    written would hold its job for ever."""
    return min(asked, conf().max_horizon)


Decided = list[tuple[Settlement, Fate]]


def _lock_and_write(connection: Connection, batch: Sequence[Settlement]) -> dict[UUID, Fate]:
    with connection.transaction():
        return _write(connection, _decide(connection, batch))


def _decide(connection: Connection, batch: Sequence[Settlement]) -> Decided:
    """Those that are still ours, locked in id order, with what becomes of them."""
    rows = connection.execute(load("lock_claims"), _claims(batch), binary=True).fetchall()
    flags: dict[UUID, bool] = dict(rows)
    return [(s, fate_of(s, cancelled=flags[s.held.job_id])) for s in batch if s.held.job_id in flags]


def _write(connection: Connection, decided: Decided) -> dict[UUID, Fate]:
    """The fates that were written. One statement per day and kind of fate."""
    ended: dict[date, Decided] = defaultdict(list)
    back: Decided = []
    failed: dict[date, list[tuple[Settlement, Failed]]] = defaultdict(list)
    for settlement, fate in decided:
        day = day_of_id(settlement.held.job_id)
        (ended[day] if isinstance(fate, Ended) else back).append((settlement, fate))
        if isinstance(settlement.result, Failed):
            failed[day].append((settlement, settlement.result))
    written: dict[UUID, Fate] = {}
    for day, some in ended.items():
        written |= _end(connection, day, some)
    if back:
        written |= _put_back(connection, back)
    for day, failures in failed.items():
        _record(connection, day, failures)
    return written


def _end(connection: Connection, day: date, some: Sequence[tuple[Settlement, Fate]]) -> dict[UUID, Fate]:
    fates: list[Ended] = [fate for _, fate in some if isinstance(fate, Ended)]
    values = {
        **_claims([s for s, _ in some]),
        "started_ats": arrays.timestamps([s.started_at for s, _ in some]),
    }
    lean = all(fate is COMPLETED for fate in fates)
    if not lean:
        values |= {
            "states": arrays.texts([fate.state.value for fate in fates]),
            "results": [fate.result for fate in fates],
            "errors": arrays.texts([fate.error for fate in fates]),
            "fingerprints": arrays.texts([fate.fingerprint for fate in fates]),
            "crashes": arrays.int8s([fate.crashes for fate in fates]),
        }
    statement = for_day("complete" if lean else "end", day)
    return _written(connection.execute(statement, values, binary=True, prepare=lean), some)


def _put_back(connection: Connection, some: Decided) -> dict[UUID, Fate]:
    fates = [fate for _, fate in some if isinstance(fate, PutBack)]
    values = {
        **_claims([s for s, _ in some]),
        "waits": [fate.waits for fate in fates],
        "wait_times": [fate.wait for fate in fates],
        "backs": [fate.back for fate in fates],
        "crashes": [fate.crashes for fate in fates],
    }
    return _written(connection.execute(load("put_back"), values, binary=True), some)


def _written(cursor: psycopg.Cursor[Any], some: Sequence[tuple[Settlement, Fate]]) -> dict[UUID, Fate]:
    if cursor.rowcount == len(some):
        return {s.held.job_id: fate for s, fate in some}
    found = {job_id for (job_id,) in cursor.fetchall()}
    return {s.held.job_id: fate for s, fate in some if s.held.job_id in found}


def _record(connection: Connection, day: date, failed: list[tuple[Settlement, Failed]]) -> None:
    connection.execute(
        for_day("attempts", day),
        {
            **_claims([s for s, _ in failed]),
            "dues": arrays.timestamps([s.held.due_at for s, _ in failed]),
            "attempts": [s.held.attempt for s, _ in failed],
            "process_ids": [s.held.process_id for s, _ in failed],
            "started_ats": arrays.timestamps([s.started_at for s, _ in failed]),
            "error_classes": [result.error.cls for _, result in failed],
            "messages": [result.error.message for _, result in failed],
            "tracebacks": [result.error.traceback for _, result in failed],
            "fingerprints": [result.error.fingerprint for _, result in failed],
        },
    )


def _fenced(connection: Connection, missing: Sequence[Settlement]) -> set[UUID]:
    """Of those that were no longer ours: without the ones an earlier settle of ours has ended."""
    fenced = {s.held.job_id for s in missing}
    for day, some in _by_day(missing).items():
        dues = arrays.timestamps([s.held.due_at for s in some])
        try:
            rows = connection.execute(
                for_day("settled_before", day), {**_claims(some), "dues": dues}
            ).fetchall()
        except psycopg.errors.UndefinedTable:  # the day was dropped by hand
            continue
        fenced -= {job_id for (job_id,) in rows}
    return fenced


def _by_day(some: Iterable[Settlement]) -> dict[date, list[Settlement]]:
    days: dict[date, list[Settlement]] = defaultdict(list)
    for settlement in some:
        days[day_of_id(settlement.held.job_id)].append(settlement)
    return days


def _claims(some: Iterable[Settlement]) -> dict[str, Any]:
    held = [s.held for s in some]
    return {
        "ids": arrays.uuids([h.job_id for h in held]),
        "tokens": arrays.uuids([h.lease_token for h in held]),
    }
