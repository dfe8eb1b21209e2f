"""The states of a job: derived, never stored on the job row.

schedule -> SCHEDULED --dispatch--> QUEUED --claim--> RUNNING --settle--> COMPLETED | FAILED | CANCELLED
                                      ^                  |
                                      +---- RETRYABLE <--+  (a failed attempt; queued again by time alone)
"""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    SCHEDULED = "scheduled"
    """Waits for its time: a timer, or an entry that was snoozed or rescheduled."""
    QUEUED = "queued"
    """May be claimed now: an entry whose run time has come."""
    RUNNING = "running"
    """Claimed: an entry under a lease."""
    RETRYABLE = "retryable"
    """An attempt failed; the entry waits for its back-off to pass."""
    COMPLETED = "completed"
    """The handler returned."""
    FAILED = "failed"
    """Attempts used up, or an error the handler called final. Retry by an operator."""
    CANCELLED = "cancelled"
    """A person or code said it shall not run."""


FINAL = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})
WAITING = frozenset({JobState.SCHEDULED, JobState.QUEUED, JobState.RETRYABLE})
CANCELLABLE = WAITING | {JobState.RUNNING}
RETRYABLE = frozenset({JobState.FAILED, JobState.CANCELLED})

EDGES: dict[str, tuple[frozenset[JobState], frozenset[JobState]]] = {
    "dispatch": (frozenset({JobState.SCHEDULED}), frozenset({JobState.QUEUED, JobState.SCHEDULED})),
    "claim": (frozenset({JobState.QUEUED}), frozenset({JobState.RUNNING})),
    "complete": (frozenset({JobState.RUNNING}), frozenset({JobState.COMPLETED})),
    "fail": (
        frozenset({JobState.RUNNING}),
        frozenset({JobState.RETRYABLE, JobState.FAILED, JobState.CANCELLED}),
    ),
    "snooze": (frozenset({JobState.RUNNING}), frozenset({JobState.SCHEDULED, JobState.CANCELLED})),
    "release": (frozenset({JobState.RUNNING}), frozenset({JobState.QUEUED, JobState.CANCELLED})),
    "rescue": (
        frozenset({JobState.RUNNING}),
        frozenset({JobState.QUEUED, JobState.RETRYABLE, JobState.FAILED, JobState.CANCELLED}),
    ),
    "cancel": (CANCELLABLE, frozenset({JobState.CANCELLED, JobState.RUNNING})),
    "retry": (RETRYABLE, frozenset({JobState.QUEUED, JobState.SCHEDULED})),
    "reschedule": (WAITING, WAITING),
}
"""verb -> (states it starts from, states it may lead to). Each has one place and one guard: the README's table."""
