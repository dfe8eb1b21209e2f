"""Every exception of the project."""

from __future__ import annotations

from datetime import timedelta
from typing import Any


class SchedulerError(Exception):
    """Base of all errors of this project."""


class InvalidJob(SchedulerError, ValueError):
    """What was asked for cannot be scheduled; `field` says which argument, `index` which of many."""

    def __init__(self, field: str, message: str, *, index: int | None = None) -> None:
        self.field, self.message, self.index = field, message, index
        where = field if index is None else f"jobs[{index}].{field}"
        super().__init__(f"{where}: {message}")


class UnknownJobType(InvalidJob):
    """No handler of this name is registered and the settings do not declare it external."""


class InvalidPayload(InvalidJob):
    """The payload cannot be stored as JSON; the message names the path inside it."""


class InvalidValue(SchedulerError, ValueError):
    """A limit, rate or hold that cannot be set; `field` says which value."""

    def __init__(self, field: str, message: str) -> None:
        self.field, self.message = field, message
        super().__init__(f"{field}: {message}")


class ChangedSince(SchedulerError):
    """What was to be taken back does not stand any more: somebody has changed it since."""


class ActionNotFound(SchedulerError, LookupError):
    """The audit has no such action that could be taken back, or not for who asks."""


class TooManyReveals(SchedulerError):
    """Somebody has looked at the values of as many payloads as one may in an hour."""


class UnknownTenant(SchedulerError, LookupError):
    """There is no tenant of this slug."""


class TenantInUse(SchedulerError):
    """The tenant has jobs or cron definitions, so it cannot be deleted."""


class DayMissing(SchedulerError):
    """The partitions of a day do not exist and could not be made; says which command an administrator runs."""


class LockTimeout(SchedulerError):
    """A concurrent transaction held what this verb needs for longer than the configured time."""


class JobNotFound(SchedulerError):
    """No job has this id (any more)."""


class PlaceUnknown(SchedulerError):
    """The job exists but was in motion at every look, or a breach of the invariant: run checkjobs."""


class InvalidTransition(SchedulerError):
    """The verb is not legal in the job's present state."""


class NotConfigured(SchedulerError):
    """A setting, argument or environment variable is missing or wrong."""


class CronError(SchedulerError, ValueError):
    """A cron expression, zone or policy that cannot be used; `field` says which part."""

    def __init__(self, field: str, message: str) -> None:
        self.field, self.message = field, message
        super().__init__(f"{field}: {message}")


class Control(SchedulerError):
    """Base of what a handler raises (or returns) to say how its attempt ends."""


class Retry(Control):
    """End this attempt as failed and try again after `after` (default: by the type's back-off)."""

    def __init__(self, message: str = "", *, after: timedelta | None = None) -> None:
        self.after = None if after is None else _span(after)
        super().__init__(message or "the handler asked for another attempt")


class Snooze(Control):
    """Put the job back for `delay`; the attempt is not counted."""

    def __init__(self, delay: timedelta) -> None:
        self.delay = _span(delay)
        super().__init__(f"snoozed for {delay}")


class Fail(Control):
    """End the job as failed now, whatever attempts are left."""


class Cancelled(Control):
    """The job was cancelled, timed out or its lease was lost: stop. Raised by `context.heartbeat()`."""


def _span(value: Any) -> timedelta:
    """TypeError where the handler can be found by it."""
    if not isinstance(value, timedelta):
        raise TypeError(f"{describe(value)} is not a timedelta")
    return value


def describe(value: Any, limit: int = 60) -> str:
    """A short repr for messages."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
