"""Small arithmetic on times."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence


def share(ordered: Sequence[float], part: float) -> float | None:
    """The value that this part of them did not exceed; None of nothing."""
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)] if ordered else None


def ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)


def ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def growth(sizes: Sequence[Mapping[int, float]]) -> tuple[float | None, float | None]:
    """By how much the process that has grown most is larger in the middle, and at the end, than at the beginning, of
    those that were there all the time; None when there was none."""
    there = set.intersection(*(set(size) for size in sizes))
    parts = [thirds([size[pid] for size in sizes]) for pid in there]
    middles = [middle / begin for begin, middle, _ in parts]
    return max(middles, default=None), max((end / begin for begin, _, end in parts), default=None)


def thirds(values: Sequence[float]) -> tuple[float, float, float]:
    """Medians of the first, the middle and the last third."""
    third = max(1, len(values) // 3)
    middle = (len(values) - third) // 2
    return (
        statistics.median(values[:third]),
        statistics.median(values[middle : middle + third]),
        statistics.median(values[-third:]),
    )
