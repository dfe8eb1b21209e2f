"""Small arithmetic on times."""

from __future__ import annotations

from collections.abc import Sequence


def share(ordered: Sequence[float], part: float) -> float | None:
    """The value that this part of them did not exceed; None of nothing."""
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)] if ordered else None


def ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)


def ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None
