"""What a cron definition says beside its rule, refused in the same words in code, in the console and at a slot."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from jobs.errors import CronError, describe

MISFIRES = ("run_once", "run_all", "skip")
OVERLAPS = ("allow_all", "skip", "buffer_one", "buffer_all", "cancel_other")
LONGEST_DELAY = timedelta(days=1)
"""Of jitter, and of spread."""
LONGEST_NOTE = 500


def require_one_of(name: str, value: Any, known: Sequence[str]) -> None:
    if value not in known:
        raise CronError(name, f"{describe(value)} is not one of {', '.join(known)}")


def require_span(name: str, value: Any, longest: timedelta) -> None:
    if not isinstance(value, timedelta) or not timedelta() <= value <= longest:
        raise CronError(name, f"{describe(value)} is no timedelta between 0 and {longest.days} days")


def require_whole(name: str, value: Any, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise CronError(name, f"{describe(value)} is no whole number from 1 to {most:,}")
