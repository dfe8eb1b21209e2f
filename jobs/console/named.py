"""A job named by text from outside: an address, a search field, a ticked row."""

from __future__ import annotations

from uuid import UUID

from jobs.conf import conf
from jobs.console.show import visible
from jobs.ids import due_of


def job_id(text: str) -> UUID | None:
    """None for what can be no job's id."""
    try:
        found = UUID(text.strip())
        due_of(found)
    except (ValueError, OverflowError):
        return None
    return found


def missing(text: str) -> str:
    """Why there is no page for what was asked. An id tells when its job was due."""
    found = job_id(text)
    if found is None:
        return f"“{visible(text)[:60]}” is no job id."
    due_at, kept = due_of(found), conf().retention.days
    return f"There is no job {found}. By its id it was due {due_at:%Y-%m-%d %H:%M:%S UTC}; jobs are kept {kept} days."
