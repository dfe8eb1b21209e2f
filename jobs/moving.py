"""The verbs prioritize and move: another priority or queue for jobs that wait. What was asked for stays in the job's row;
timer and entry say what is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from jobs import notify, verbs
from jobs.errors import InvalidJob
from jobs.report import Report
from jobs.slugs import name_of
from jobs.sql import load

PRIORITIES = range(-100, 101)


def prioritize(
    ids: Sequence[UUID], priority: int, *, using: str = "default", action_id: int | None = None
) -> Report:
    """Give these waiting jobs this priority, -100 to 100. Running and ended ones are skipped with the reason. InvalidJob
    for any other number."""
    return prioritize_each(dict.fromkeys(ids, priority), using=using, action_id=action_id)


def move(ids: Sequence[UUID], queue: str, *, using: str = "default", action_id: int | None = None) -> Report:
    """Put these waiting jobs into another queue. Running and ended ones are skipped with the reason. InvalidJob for a
    name that schedule() would refuse."""
    return move_each(dict.fromkeys(ids, queue), using=using, action_id=action_id)


def prioritize_each(
    priorities: Mapping[UUID, int], *, using: str = "default", action_id: int | None = None
) -> Report:
    """As `prioritize`, each job its own."""
    for priority in set(priorities.values()):
        checked_priority(priority)
    return _change(priorities, {}, using, action_id)


def move_each(queues: Mapping[UUID, str], *, using: str = "default", action_id: int | None = None) -> Report:
    """As `move`, each job its own."""
    for queue in set(queues.values()):
        checked_queue(queue)
    return _change({}, queues, using, action_id)


def checked_priority(value: Any) -> int:
    """InvalidJob for what is no priority."""
    if isinstance(value, bool) or not isinstance(value, int) or value not in PRIORITIES:
        raise InvalidJob("priority", f"{value!r} is not a whole number from -100 to 100")
    return value


def checked_queue(value: Any) -> str:
    """InvalidJob for what is no name of a queue."""
    try:
        return name_of(value)
    except ValueError as error:
        raise InvalidJob("queue", str(error)) from None


def _change(
    priorities: Mapping[UUID, int], queues: Mapping[UUID, str], using: str, action_id: int | None
) -> Report:
    more = {"action_id": action_id, "given": (priorities, queues)}
    places: list[verbs.Place] = [_timers, _entries, verbs._running, verbs._ended]
    report = verbs._walk(list(priorities or queues), places, using, more)
    notify.after_commit(using)
    return report


def _timers(cursor: Any, found: dict[str, Any], report: Report) -> set[UUID]:
    cursor.execute(load("move_timers"), _values(found))
    return _changed(cursor, report)


def _entries(cursor: Any, found: dict[str, Any], report: Report) -> set[UUID]:
    cursor.execute(load("move_entries"), _values(found))
    return _changed(cursor, report)


def _values(found: dict[str, Any]) -> dict[str, Any]:
    priorities, queues = found["given"]
    return {
        "ids": found["ids"],
        "dues": found["dues"],
        "action_id": found["action_id"],
        "priorities": [priorities.get(job_id) for job_id in found["ids"]],
        "queues": [queues.get(job_id) for job_id in found["ids"]],
    }


def _changed(cursor: Any, report: Report) -> set[UUID]:
    found = {job_id for (job_id,) in cursor.fetchall()}
    report.changed += len(found)
    return found
