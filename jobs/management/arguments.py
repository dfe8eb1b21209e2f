"""Small `type=` functions for command lines: a wrong value is one clear sentence."""

from __future__ import annotations

from argparse import ArgumentTypeError


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
