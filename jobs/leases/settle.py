"""Settle: record how attempts ended and give up their leases, many in one transaction.

The guard is the lease token, under the entry's row lock: a late or dead attempt writes nothing. A cancel flag decides
over every exit from running except completion. Entries are locked in id order, as by every verb.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, assert_never
from uuid import UUID

import psycopg

from jobs.conf import conf
from jobs.partitions import day_of
from jobs.results import Cancelled, Completed, Failed, Released, Settlement, Snoozed
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


def settle(connection: Connection, settlements: Iterable[Settlement]) -> Settled:
    """Write all of these in one transaction. Errors of the database leave nothing written; try again."""
    batch = sorted(settlements, key=lambda s: s.held.job_id)
    settled = Settled(batch)
    if not batch:
        return settled
    with connection.transaction():
        if all(type(s.result) is Completed for s in batch):
            fates = {s.held.job_id: fate_of(s, cancelled=False) for s in batch}
        else:
            fates = _decide(connection, batch)
        settled.fates = _write(connection, batch, fates)
    if missing := [s for s in batch if s.held.job_id not in settled.fates]:
        settled.fenced = _fenced(connection, missing)
    return settled


def fate_of(settlement: Settlement, *, cancelled: bool) -> Fate:
    """What becomes of a job after this result; `cancelled`: its flag, read under the entry's lock."""
    held, result = settlement.held, settlement.result
    match result:
        case Completed(result=value, note=note):
            return Ended(JobState.COMPLETED, value, note)
        case Failed(error=error, final=final, crashed=crashed):
            if cancelled:
                return Ended(JobState.CANCELLED, crashes=int(crashed))
            used_up = held.attempt >= held.max_attempts
            if final or used_up or (crashed and held.crashes + 1 >= conf().max_crashes):
                text = f"{error.cls}: {error.message}" if error.message else error.cls
                return Ended(JobState.FAILED, None, text[:500], error.fingerprint, int(crashed))
            return PutBack("retry", result.after, 0, int(crashed))
        case Released(crashed=crashed):
            return Ended(JobState.CANCELLED) if cancelled else PutBack(None, None, 1, int(crashed))
        case Snoozed(delay=delay):
            return Ended(JobState.CANCELLED) if cancelled else PutBack("snooze", delay, 1)
        case Cancelled():
            return Ended(JobState.CANCELLED)
        case _:
            assert_never(result)


def _decide(connection: Connection, batch: Sequence[Settlement]) -> dict[UUID, Fate]:
    rows = connection.execute(
        load("lock_claims"),
        {"ids": [s.held.job_id for s in batch], "tokens": [s.held.lease_token for s in batch]},
    ).fetchall()
    flags: dict[UUID, bool] = dict(rows)
    return {
        s.held.job_id: fate_of(s, cancelled=flags[s.held.job_id]) for s in batch if s.held.job_id in flags
    }


def _write(connection: Connection, batch: Sequence[Settlement], fates: dict[UUID, Fate]) -> dict[UUID, Fate]:
    """The fates that were written. One statement per day and kind of fate."""
    ended: dict[date, list[tuple[Settlement, Ended]]] = defaultdict(list)
    back: list[tuple[Settlement, PutBack]] = []
    failures: dict[date, list[tuple[Settlement, Failed]]] = defaultdict(list)
    for settlement in batch:
        match fates.get(settlement.held.job_id):
            case Ended() as fate:
                ended[day_of(settlement.held.due_at)].append((settlement, fate))
            case PutBack() as fate:
                back.append((settlement, fate))
            case None:
                continue
        if isinstance(settlement.result, Failed):
            failures[day_of(settlement.held.due_at)].append((settlement, settlement.result))
    written: set[UUID] = set()
    for day, some in ended.items():
        written |= _end(connection, day, some)
    if back:
        written |= _put_back(connection, back)
    for day, failed in failures.items():
        _record(connection, day, [(s, result) for s, result in failed if s.held.job_id in written])
    return {job_id: fate for job_id, fate in fates.items() if job_id in written}


def _end(connection: Connection, day: date, some: list[tuple[Settlement, Ended]]) -> set[UUID]:
    rows = connection.execute(
        for_day("end", day),
        {
            "ids": [s.held.job_id for s, _ in some],
            "tokens": [s.held.lease_token for s, _ in some],
            "states": [fate.state.value for _, fate in some],
            "started_ats": [s.started_at for s, _ in some],
            "results": [fate.result for _, fate in some],
            "errors": [fate.error for _, fate in some],
            "fingerprints": [fate.fingerprint for _, fate in some],
            "crashes": [fate.crashes for _, fate in some],
        },
    ).fetchall()
    return {job_id for (job_id,) in rows}


def _put_back(connection: Connection, some: list[tuple[Settlement, PutBack]]) -> set[UUID]:
    rows = connection.execute(
        load("put_back"),
        {
            "ids": [s.held.job_id for s, _ in some],
            "tokens": [s.held.lease_token for s, _ in some],
            "waits": [fate.waits for _, fate in some],
            "wait_times": [fate.wait for _, fate in some],
            "backs": [fate.back for _, fate in some],
            "crashes": [fate.crashes for _, fate in some],
        },
    ).fetchall()
    return {job_id for (job_id,) in rows}


def _record(connection: Connection, day: date, failed: list[tuple[Settlement, Failed]]) -> None:
    if not failed:
        return
    connection.execute(
        for_day("attempts", day),
        {
            "tokens": [s.held.lease_token for s, _ in failed],
            "ids": [s.held.job_id for s, _ in failed],
            "dues": [s.held.due_at for s, _ in failed],
            "attempts": [s.held.attempt for s, _ in failed],
            "process_ids": [s.held.process_id for s, _ in failed],
            "started_ats": [s.started_at for s, _ in failed],
            "error_classes": [result.error.cls for _, result in failed],
            "messages": [result.error.message for _, result in failed],
            "tracebacks": [result.error.traceback for _, result in failed],
            "fingerprints": [result.error.fingerprint for _, result in failed],
        },
    )


def _fenced(connection: Connection, missing: Sequence[Settlement]) -> set[UUID]:
    """Of those that were no longer ours: without the ones an earlier settle of ours has ended."""
    fenced = {s.held.job_id for s in missing}
    days: dict[date, list[Settlement]] = defaultdict(list)
    for settlement in missing:
        days[day_of(settlement.held.due_at)].append(settlement)
    for day, some in days.items():
        rows = connection.execute(
            for_day("settled_before", day),
            {
                "ids": [s.held.job_id for s in some],
                "dues": [s.held.due_at for s in some],
                "tokens": [s.held.lease_token for s in some],
            },
        ).fetchall()
        fenced -= {job_id for (job_id,) in rows}
    return fenced
