"""Numbers and durations in words, as pages show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

_STEPS = ((86400, "d"), (3600, "h"), (60, "min"))


@dataclass(frozen=True)
class Count:
    """A count that may have stopped at its cap: then it reads "10,000+"."""

    value: int
    cap: int | None = None

    @property
    def is_capped(self) -> bool:
        return self.cap is not None and self.value >= self.cap

    def __str__(self) -> str:
        return f"{min(self.value, self.cap or self.value):,}" + "+" * self.is_capped

    def __bool__(self) -> bool:
        return self.value > 0


def lasting(seconds: float | timedelta | str | None) -> str:
    """A duration in its one or two largest units: "320 ms", "4 s", "3 min 20 s", "2 h 5 min", "3 d 4 h"."""
    if seconds is None or seconds == "":  # a template's word for what is not there
        return "\N{EN DASH}"
    value = seconds.total_seconds() if isinstance(seconds, timedelta) else float(seconds)
    sign, value = ("-" if value < 0 else ""), abs(value)
    if value < 1:
        return f"{sign}{round(value * 1000)} ms"
    if value < 9.95:
        return f"{sign}{value:.1f} s".replace(".0 s", " s")
    whole = round(value)
    for number, (size, unit) in enumerate(_STEPS):
        if whole >= size:
            small, name = (_STEPS[number + 1]) if number + 1 < len(_STEPS) else (1, "s")
            rest = whole % size // small
            return f"{sign}{whole // size:,} {unit}" + (f" {rest} {name}" if rest else "")
    return f"{sign}{whole} s"


def many(count: int | Count, one: str, more: str = "") -> str:
    """ "1 job", "5,000+ jobs": the number and its noun; `more` where the plural is not one with an s."""
    counted = count if isinstance(count, Count) else Count(count)
    is_one = counted.value == 1 and not counted.is_capped
    return f"{counted} {one if is_one else more or one + 's'}"


def percent(part: float, whole: float) -> str:
    """Never "100 %" for what is not all, nor "0 %" for what is something."""
    if not whole:
        return "\N{EN DASH}"
    share = 100 * part / whole
    if part < whole and share >= 99.995:
        return "99.99 %"
    if part > 0 and share < 0.01:
        return "< 0.01 %"
    return f"{share:.2f} %" if share > 99 and part < whole else f"{share:.3g} %"


def size(count: float) -> str:
    """Bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.3g} {unit}" if unit != "B" else f"{count:.0f} B"
        count /= 1000
    return f"{count:,.3g} TB"


def about(count: float) -> str:
    """An estimate: two figures are enough."""
    if count < 1000:
        return f"≈ {round(count)}"
    for unit in ("k", "M", "G"):
        count /= 1000
        if count < 999.5:
            return f"≈ {count:.3g} {unit}"
    return f"≈ {count:,.3g} T"
