"""The verbs prioritize and move: another priority or queue for jobs that wait. What was asked for stays in the job's row;
timer and entry say what is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from jobs import notify, verbs
from jobs.errors import InvalidJob
from jobs.report import Report
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
    name of none or more than 100 characters."""
    return move_each(dict.fromkeys(ids, queue), using=using, action_id=action_id)


def prioritize_each(
    priorities: Mapping[UUID, int], *, using: str = "default", action_id: int | None = None
) -> Report:
    """As `prioritize`, each job its own."""
    for priority in set(priorities.values()):
        if isinstance(priority, bool) or not isinstance(priority, int) or priority not in PRIORITIES:
            raise InvalidJob("priority", f"{priority!r} is not a whole number from -100 to 100")
    return _change(priorities, {}, using, action_id)


def move_each(queues: Mapping[UUID, str], *, using: str = "default", action_id: int | None = None) -> Report:
    """As `move`, each job its own."""
    for queue in set(queues.values()):
        if not isinstance(queue, str) or not 0 < len(queue) <= 100 or "\0" in queue:
            raise InvalidJob("queue", f"{queue!r} is not a name of 1 to 100 characters")
    return _change({}, queues, using, action_id)


def _change(
    priorities: Mapping[UUID, int], queues: Mapping[UUID, str], using: str, action_id: int | None
) -> Report:
    def values(found: dict[str, Any]) -> dict[str, Any]:
        ids = found["ids"]
        return {
            **found,
            "priorities": [priorities.get(job_id) for job_id in ids],
            "queues": [queues.get(job_id) for job_id in ids],
        }

    def timers(cursor: Any, found: dict[str, Any], report: Report) -> set[UUID]:
        cursor.execute(load("move_timers"), values(found))
        return _changed(cursor, report)

    def entries(cursor: Any, found: dict[str, Any], report: Report) -> set[UUID]:
        cursor.execute(load("move_entries"), values(found))
        return _changed(cursor, report)

    ids = list(priorities or queues)
    places = [timers, entries, verbs._running, verbs._ended]
    report = verbs._walk(ids, places, using, {"action_id": action_id})
    notify.after_commit(using)
    return report


def _changed(cursor: Any, report: Report) -> set[UUID]:
    found = {job_id for (job_id,) in cursor.fetchall()}
    report.changed += len(found)
    return found
