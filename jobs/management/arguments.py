"""Small `type=` functions for command lines: a wrong value is one clear sentence."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connections

EXAMPLE = "019a8f3c-5e10-7b44-9d2e-0c6a1f2b3d4e"
SPAN = re.compile(r"([0-9]{1,6}) ?([smhd])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not a whole number") from error
    if number < 1:
        raise ArgumentTypeError(f"{number} is not positive")
    return number


def names(text: str) -> tuple[str, ...]:
    """A comma-separated list."""
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not found:
        raise ArgumentTypeError("is empty; give names separated by commas")
    return found


def database(text: str) -> str:
    """An alias of settings.DATABASES."""
    if text not in connections.settings:
        raise ArgumentTypeError(f"{text!r} is none of settings.DATABASES: {', '.join(connections.settings)}")
    return text


def job_id(text: str) -> UUID:
    try:
        return UUID(text.strip())
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is no job id; one looks like {EXAMPLE}") from error


def moment(text: str) -> datetime | timedelta:
    """An instant with its zone, or a time from now like 30m or 2h."""
    if span := SPAN.fullmatch(text.strip()):
        return timedelta(seconds=int(span[1]) * SECONDS[span[2]])
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError(
            f"{text!r} is no time; write 2026-12-31T18:00Z, or 30m, 2h, 1d from now"
        ) from error
    if found.utcoffset() is None:
        raise ArgumentTypeError(f"{text!r} does not say in which zone; append Z or +02:00")
    return found


def limit(text: str) -> int | str | None:
    """A number; none, null or unlimited for None. What is neither is left for the rules of the limits to refuse."""
    if text.strip().lower() in ("none", "null", "unlimited"):
        return None
    try:
        return int(text)
    except ValueError:
        return text


def share(text: str) -> float | str | None:
    given = limit(text)
    try:
        return float(given) if isinstance(given, str) else given
    except ValueError:
        return text


def rate(text: str) -> tuple[int | str | None, str | None]:
    """A number and per what: `10/second`, `600/hour`; without one, per second. None: unlimited."""
    number, slash, per = text.partition("/")
    return limit(number), per.strip() if slash else None
