"""Times that a table takes: each has a CHECK that keeps out what no datetime holds in every zone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from jobs.errors import describe

FIRST, LAST = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)


def stored(value: Any) -> datetime:
    """This time in UTC. ValueError says what is wrong with it."""
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise ValueError(
            f"{describe(value)} is not an aware datetime; say which zone it is in (timezone.now())"
        )
    try:
        found = value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{value} cannot be expressed in UTC") from None
    if not FIRST < found < LAST:
        raise ValueError(f"{value} is at an end of the calendar")
    return found
