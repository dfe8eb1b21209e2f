"""The verbs that need no lease: cancel, retry, reschedule, for up to a few hundred ids in one transaction.

A job is looked for in one place after another, one statement each (each has its own snapshot), and again from the
start while it is found nowhere: it is in motion then. READ COMMITTED is needed; a serialisation failure of a caller's
stricter transaction is passed on. Locks are taken in id order: timer, entry, outcome. InvalidValue for an id that is no
UUID.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, transaction

from jobs import admission, clock, keys, notify
from jobs.conf import conf
from jobs.errors import InvalidValue, PlaceUnknown, describe
from jobs.ids import dues_of
from jobs.newjob import moment
from jobs.report import Report
from jobs.sql import load

TRIES = 5

Place = Callable[[Any, dict[str, Any], Report], set[UUID]]
"""Acts on the ids it finds in one place, counts them in the report and returns them."""


def cancel(ids: Sequence[UUID], *, using: str = "default", action_id: int | None = None) -> Report:
    """See that these jobs do not (continue to) run. A running one is flagged: it ends cancelled, unless it completes
    first. PlaceUnknown when a job exists but was found nowhere in five looks."""
    return _walk(ids, [_cancel_timers, _cancel_entries, _ended], using, {"action_id": action_id})


def reschedule(
    ids: Sequence[UUID], run_at: datetime, *, using: str = "default", action_id: int | None = None
) -> Report:
    """Run these waiting jobs at `run_at` (aware) instead, or now when that is past. Running and ended ones are
    skipped with the reason. InvalidJob for a time that schedule() would refuse."""
    horizon = clock.now(using) + conf().max_horizon
    values = {"action_id": action_id, "run_at": moment("run_at", run_at, horizon)}
    report = _walk(ids, [_reschedule_timers, _reschedule_entries, _running, _ended], using, values)
    notify.after_commit(using)
    return report


def retry(ids: Sequence[UUID], *, using: str = "default", action_id: int | None = None) -> Report:
    """Another run for failed or cancelled jobs, attempts counted on. A job whose unique key another job holds by now
    is skipped and stays ended."""
    report = Report()
    with transaction.atomic(using), connections[using].cursor() as cursor:
        todo = sorted(_checked(ids))
        free = _free_keys(cursor, todo, using, report)
        values = _values(free) | {"action_id": action_id}
        cursor.execute(load("retry"), values)
        back = _found(cursor)
        report.changed = len(back)
        left = [job_id for job_id in free if job_id not in back]
        if left:
            _return_keys(cursor, left)
            report.skipped += _states(cursor, left)
    notify.after_commit(using)
    return report


def _walk(ids: Sequence[UUID], places: list[Place], using: str, more: dict[str, Any]) -> Report:
    report = Report()
    with transaction.atomic(using), connections[using].cursor() as cursor:
        left = _checked(ids)
        for _ in range(TRIES):
            for place in places:
                if left:
                    left -= place(cursor, _values(sorted(left)) | more, report)
            if not left:
                return report
            left -= _nowhere(cursor, sorted(left), report)
    if left:
        raise PlaceUnknown(
            f"{len(left)} jobs exist but were found in no place, e.g. {min(left)}: run checkjobs"
        )
    return report


def _checked(ids: Iterable[UUID | str]) -> set[UUID]:
    return {each if isinstance(each, UUID) else _parsed(each) for each in ids}


def _parsed(text: object) -> UUID:
    try:
        return UUID(str(text))
    except ValueError:
        raise InvalidValue("ids", f"{describe(text)} is no id of a job") from None


def _values(ids: Sequence[UUID]) -> dict[str, Any]:
    # The due times as literals: with them the planner visits exactly the days of these ids.
    return {"ids": list(ids), "dues": dues_of(ids)}


def _cancel_timers(cursor: Any, values: dict[str, Any], report: Report) -> set[UUID]:
    cursor.execute(load("cancel_timers"), values)
    found = {job_id for (job_id,) in cursor.fetchall()}
    report.changed += len(found)
    _free_keys_of(cursor, found)
    return found


def _cancel_entries(cursor: Any, values: dict[str, Any], report: Report) -> set[UUID]:
    cursor.execute(load("cancel_entries"), values)
    rows = cursor.fetchall()
    found = {job_id: running for job_id, running, _, _ in rows}
    _admit(rows, cursor)
    ended = {job_id for job_id, running in found.items() if not running}
    report.changed += len(ended)
    report.requested += len(found) - len(ended)
    _free_keys_of(cursor, ended)
    return set(found)


def _reschedule_timers(cursor: Any, values: dict[str, Any], report: Report) -> set[UUID]:
    cursor.execute(load("reschedule_timers"), values)
    return _changed(cursor, report)


def _reschedule_entries(cursor: Any, values: dict[str, Any], report: Report) -> set[UUID]:
    cursor.execute(load("reschedule_entries"), values)
    return _changed(cursor, report)


def _changed(cursor: Any, report: Report) -> set[UUID]:
    found = _found(cursor)
    report.changed += len(found)
    return found


def _found(cursor: Any) -> set[UUID]:
    """The jobs of these rows; their concurrency keys may have room after the commit."""
    rows = cursor.fetchall()
    _admit(rows, cursor)
    return {job_id for job_id, *_ in rows}


def _admit(rows: Sequence[tuple[Any, ...]], cursor: Any) -> None:
    keys = {(tenant_id, key) for *_, tenant_id, key in rows if key is not None}
    admission.after_commit(keys, cursor.db.alias)


def _running(cursor: Any, values: dict[str, Any], report: Report) -> set[UUID]:
    cursor.execute(
        "SELECT job_id FROM jobs_queueentry WHERE job_id = ANY(%(ids)s::uuid[]) AND lease_token IS NOT NULL",
        values,
    )
    found = {job_id for (job_id,) in cursor.fetchall()}
    report.skipped["running"] += len(found)
    report.skipped = +report.skipped
    return found


def _ended(cursor: Any, values: dict[str, Any], report: Report) -> set[UUID]:
    found = _outcomes(cursor, values)
    report.skipped += Counter(found.values())
    return set(found)


def _outcomes(cursor: Any, values: dict[str, Any]) -> dict[UUID, str]:
    cursor.execute(
        "SELECT job_id, state FROM jobs_outcome "
        "WHERE job_id = ANY(%(ids)s::uuid[]) AND due_at = ANY(%(dues)s::timestamptz[])",
        values,
    )
    return dict(cursor.fetchall())


def _nowhere(cursor: Any, ids: list[UUID], report: Report) -> set[UUID]:
    """Those of the ids that have no job row: they never were, or their day was dropped."""
    cursor.execute(
        "SELECT id FROM jobs_job WHERE id = ANY(%(ids)s::uuid[]) AND due_at = ANY(%(dues)s::timestamptz[])",
        _values(ids),
    )
    gone = set(ids) - {job_id for (job_id,) in cursor.fetchall()}
    report.skipped += Counter({"not found": len(gone)})
    return gone


def _states(cursor: Any, ids: list[UUID]) -> Counter[str]:
    """Why retry left these alone."""
    values = _values(ids)
    ended = _outcomes(cursor, values)
    cursor.execute("SELECT job_id FROM jobs_queueentry WHERE job_id = ANY(%(ids)s::uuid[])", values)
    dispatched = {job_id for (job_id,) in cursor.fetchall()}
    cursor.execute(
        "SELECT job_id FROM jobs_timer WHERE job_id = ANY(%(ids)s::uuid[]) AND due_at = ANY(%(dues)s::timestamptz[])",
        values,
    )
    waiting = dispatched | {job_id for (job_id,) in cursor.fetchall()}
    return Counter(ended.get(job_id, "not ended" if job_id in waiting else "not found") for job_id in ids)


def _free_keys(cursor: Any, ids: list[UUID], using: str, report: Report) -> list[UUID]:
    """Take the keys of keyed jobs that have ended; those another job holds are skipped, with the holder."""
    cursor.execute(
        "SELECT job.id, job.tenant_id, job.job_type, job.unique_key FROM jobs_job job "
        "JOIN jobs_outcome outcome ON outcome.job_id = job.id AND outcome.due_at = job.due_at "
        "  AND outcome.due_at = ANY(%(dues)s::timestamptz[]) AND outcome.state IN ('failed', 'cancelled') "
        "WHERE job.id = ANY(%(ids)s::uuid[]) AND job.due_at = ANY(%(dues)s::timestamptz[]) "
        "  AND job.unique_key IS NOT NULL AND job.unique_for IS NULL",
        _values(ids),
    )
    wanted = [
        keys.Wanted((tenant, kind, key), job_id, None) for job_id, tenant, kind, key in cursor.fetchall()
    ]
    if not wanted:
        return ids
    holders = keys.take(wanted, using)
    refused = {want.job_id: holders[want.name] for want in wanted if holders[want.name] != want.job_id}
    report.skipped += Counter(f"unique key held by {holder}" for holder in refused.values())
    return [job_id for job_id in ids if job_id not in refused]


def _return_keys(cursor: Any, ids: list[UUID]) -> None:
    """Give back what was taken for jobs that another operator moved meanwhile and that have ended again."""
    values = _values(ids)
    ended = list(_outcomes(cursor, values))
    _free_keys_of(cursor, ended)


def _free_keys_of(cursor: Any, ids: Any) -> None:
    if ids:
        cursor.execute(
            "DELETE FROM jobs_uniquekey WHERE job_id = ANY(%s::uuid[]) AND expires_at IS NULL", [list(ids)]
        )
