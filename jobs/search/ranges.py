"""Ranges as people write them: attempt:>3, attempt:2..5, late:>5m, ran:10s..1m."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from jobs.search.terms import SearchError, Term
from jobs.search.times import UNITS

T = TypeVar("T", int, timedelta)

LONGEST = timedelta(days=366)
MOST = 1_000_000
_SPAN = re.compile(r"(\d{1,8})(ms|[smhdw])")
_SIGN = re.compile(r"(>=|<=|>|<|=)?(.*)", re.DOTALL)


@dataclass(frozen=True)
class Range(Generic[T]):
    """[least, below); None: open."""

    least: T | None = None
    below: T | None = None

    def holds(self, value: T) -> bool:
        return (self.least is None or value >= self.least) and (self.below is None or value < self.below)

    def lookups(self, name: str) -> dict[str, Any]:
        """For a column that lies in it."""
        return _given({f"{name}__gte": self.least, f"{name}__lt": self.below})

    def after(self: Range[timedelta], name: str, earlier: Any) -> dict[str, Any]:
        """For a moment that lies so long after an expression."""
        return {
            lookup: earlier + length
            for lookup, length in _given({f"{name}__gte": self.least, f"{name}__lt": self.below}).items()
        }

    def before(self: Range[timedelta], name: str, now: datetime) -> dict[str, Any]:
        """For a moment that lies so long before `now`, never after it."""
        found = {f"{name}__lte": now - (self.least or timedelta())}
        return found if self.below is None else found | {f"{name}__gt": now - self.below}


def numbers(term: Term) -> Range[int]:
    """Of `attempt:`. A number alone is exactly this one."""
    return _range(term, _number, 1, alone=lambda value: Range(value, value + 1))


def lengths(term: Term) -> Range[timedelta]:
    """Of `late:` and `ran:`. A length alone is at least this."""
    return _range(term, _length, timedelta(), alone=lambda value: Range(value))


def _range(
    term: Term, read: Callable[[str, Term], T], step: T, *, alone: Callable[[T], Range[T]]
) -> Range[T]:
    """`step`: from a value to the next one; none between lengths."""
    if len(term.values) > 1:
        raise SearchError(f"{term.name}: takes one range.", term.start, term.end, _examples(term))
    (text,) = term.values
    first, dots, last = text.partition("..")
    if dots:
        found = Range(read(first, term), read(last, term) + step)
        if found.least >= found.below:  # type: ignore[operator]  # both are there
            raise SearchError("This range ends before it begins.", term.start, term.end, _examples(term))
        return found
    sign, rest = _SIGN.fullmatch(text).groups()  # type: ignore[union-attr]  # it matches everything
    value = read(rest, term)
    if sign in (">", ">="):
        return Range(least=value + step if sign == ">" else value)
    if sign in ("<", "<="):
        return Range(below=value if sign == "<" else value + step)
    return alone(value)


def _number(text: str, term: Term) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 8 and int(text) <= MOST):
        raise SearchError(f"“{text}” is no number up to {MOST:,}.", term.start, term.end, _examples(term))
    return int(text)


def _length(text: str, term: Term) -> timedelta:
    match = _SPAN.fullmatch(text)
    if match is None:
        raise SearchError(f"“{text}” is no length of time.", term.start, term.end, _examples(term))
    found = timedelta(**{UNITS[match[2]]: int(match[1])})
    if found > LONGEST:
        raise SearchError(f"{text} is longer than {LONGEST.days} days.", term.start, term.end)
    return found


def _examples(term: Term) -> str:
    return "As in attempt:>3 or attempt:2..5" if term.name == "attempt" else f"As in {term.name}:>5m"


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
