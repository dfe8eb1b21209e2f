"""Apply: the verb of an operation to one chunk of jobs, and back. What cannot be done to one job holds up no other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, transaction

from jobs import moving, verbs
from jobs.errors import SchedulerError
from jobs.ids import due_of, dues_of
from jobs.models import Operation
from jobs.report import Report


@dataclass
class Applied:
    """What a chunk came to."""

    ids: list[UUID] = field(default_factory=list)
    """Jobs that were changed or asked to stop, in order."""
    befores: list[str] = field(default_factory=list)
    changed: int = 0
    requested: int = 0
    skipped: Counter[str] = field(default_factory=Counter)


Do = Callable[[list[UUID]], Report]


def apply(operation: Operation, ids: Sequence[UUID], using: str) -> Applied:
    """In the caller's transaction."""
    todo = sorted(ids)
    before = _before(operation.verb, todo, using)
    done = _bisect(todo, _verb(operation, using), using)
    changed = _ours(operation, todo, before, using)
    befores = [before[job_id] for job_id in changed if before]
    return Applied(changed, befores, done.changed, done.requested, done.skipped)


def revert(
    operation: Operation, undone: Operation, ids: Sequence[UUID], befores: Sequence[str], using: str
) -> Applied:
    """Take back what a chunk of `undone` did, as far as nothing has happened to the jobs since."""
    before = dict(zip(ids, befores, strict=True)) if befores else {}
    untouched = _ours(undone, sorted(ids), before, using)
    mark: dict[str, Any] = {"using": using, "action_id": operation.action_id}
    actions: dict[str, Do] = {
        "cancel": lambda some: verbs.retry(some, **mark),
        "retry": lambda some: verbs.cancel(_waiting(some, using), **mark),
        "reschedule": lambda some: _reschedule_back(some, before, mark),
        "prioritize": lambda some: moving.prioritize_each({each: int(before[each]) for each in some}, **mark),
        "move": lambda some: moving.move_each({each: before[each] for each in some}, **mark),
    }
    done = _bisect(untouched, actions[undone.verb], using) if untouched else Report()
    left = len(untouched) - done.changed - done.requested - done.skipped.total()
    done.skipped += Counter({"changed since": len(ids) - len(untouched), "running or ended": left})
    return Applied(untouched, [], done.changed, done.requested, done.skipped)


def _verb(operation: Operation, using: str) -> Do:
    given = operation.arguments
    mark: dict[str, Any] = {"using": using, "action_id": operation.action_id}
    actions: dict[str, Do] = {
        "retry": lambda some: verbs.retry(some, **mark),
        "cancel": lambda some: verbs.cancel(some, **mark),
        "reschedule": lambda some: verbs.reschedule(some, datetime.fromisoformat(given["run_at"]), **mark),
        "prioritize": lambda some: moving.prioritize(some, given["priority"], **mark),
        "move": lambda some: moving.move(some, given["queue"], **mark),
    }
    return actions[operation.verb]


def _bisect(ids: list[UUID], do: Do, using: str) -> Report:
    """One job that breaks an invariant is found by halving, told and left."""
    try:
        with transaction.atomic(using):
            return do(ids)
    except SchedulerError as error:
        if len(ids) == 1:
            return Report(skipped=Counter({f"error: {type(error).__name__}": 1}))
    middle = len(ids) // 2
    report = _bisect(ids[:middle], do, using)
    report += _bisect(ids[middle:], do, using)
    return report


_COLUMNS = {"reschedule": "run_at", "prioritize": "priority", "move": "queue"}


def _before(verb: str, ids: list[UUID], using: str) -> dict[UUID, str]:
    """What the verb will change, read under the locks that it takes itself next, in the same order."""
    if verb not in _COLUMNS:
        return {}
    column = _COLUMNS[verb]
    values: dict[str, Any] = {"ids": ids, "dues": dues_of(ids)}
    of_timer = "due_at" if verb == "reschedule" else column
    with connections[using].cursor() as cursor:
        cursor.execute(
            f"SELECT job_id, {of_timer} FROM jobs_timer "
            "WHERE job_id = ANY(%(ids)s::uuid[]) AND due_at = ANY(%(dues)s::timestamptz[]) ORDER BY job_id FOR UPDATE",
            values,
        )
        found = dict(cursor.fetchall())
        cursor.execute(
            f"SELECT job_id, {column} FROM jobs_queueentry WHERE job_id = ANY(%(ids)s::uuid[]) ORDER BY job_id FOR UPDATE",
            values,
        )
        found.update(cursor.fetchall())
    return {job_id: _text(value) for job_id, value in found.items()}


def _ours(operation: Operation, ids: list[UUID], before: dict[UUID, str], using: str) -> list[UUID]:
    """Those of the jobs that are as this operation has left them: they bear its number, or, as timers, its value."""
    values = {"ids": ids, "dues": dues_of(ids), "action_id": operation.action_id, **_wanted(operation)}
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT job_id FROM jobs_queueentry WHERE job_id = ANY(%(ids)s::uuid[]) AND action_id = %(action_id)s "
            "UNION ALL SELECT job_id FROM jobs_outcome WHERE job_id = ANY(%(ids)s::uuid[]) "
            "AND due_at = ANY(%(dues)s::timestamptz[]) AND action_id = %(action_id)s "
            "UNION ALL SELECT job_id FROM jobs_timer WHERE job_id = ANY(%(ids)s::uuid[]) "
            "AND due_at = ANY(%(dues)s::timestamptz[]) AND (priority = %(priority)s OR queue = %(queue)s)",
            values,
        )
        found = {job_id for (job_id,) in cursor.fetchall()}
    return [job_id for job_id in ids if job_id in found and (not before or job_id in before)]


def _wanted(operation: Operation) -> dict[str, Any]:
    """What prioritize or move have set on timers, which have no place for a number of an operation."""
    return {name: operation.arguments.get(name) for name in ("priority", "queue")}


def _waiting(ids: list[UUID], using: str) -> list[UUID]:
    """Without those that run already or have ended again."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT job_id FROM jobs_queueentry WHERE job_id = ANY(%s::uuid[]) AND lease_token IS NULL ORDER BY job_id "
            "FOR UPDATE",
            [ids],
        )
        return [job_id for (job_id,) in cursor.fetchall()]


def _reschedule_back(ids: list[UUID], before: dict[UUID, str], mark: dict[str, Any]) -> Report:
    times: dict[str, list[UUID]] = defaultdict(list)
    for job_id in ids:
        times[before[job_id] or due_of(job_id).isoformat()].append(job_id)
    report = Report()
    for text, some in sorted(times.items()):
        report += verbs.reschedule(some, datetime.fromisoformat(text), **mark)
    return report


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
