"""Back-off: the number of a failed attempt → how long to wait for the next.

Full jitter is the rule of the AWS Architecture Blog, "Exponential Backoff And Jitter" (Marc Brooker, 2015,
https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/): a delay anywhere between nothing and the
ceiling, so that jobs that failed together do not come back together.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from jobs.conf import conf
from jobs.errors import NotConfigured

Jitter = Literal["full", "none"]
_NOTHING = timedelta()
_RANDOM = random.Random()  # noqa: S311 - spreads load, guards nothing


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """`base` * `factor` ** (attempt - 1), at most `cap`; or, when `steps` is not empty, one delay per attempt.

    NotConfigured for negative delays, a factor below 1 and an unknown jitter.
    """

    base: timedelta
    cap: timedelta
    factor: float = 2
    jitter: Jitter = "full"
    steps: tuple[timedelta, ...] = ()
    """The delay after the first failed attempt, the second, …; the last one repeats."""

    def __post_init__(self) -> None:
        delays: tuple[object, ...] = (self.base, self.cap, *self.steps)
        for delay in delays:
            if not isinstance(delay, timedelta) or delay < _NOTHING:
                raise NotConfigured(f"a back-off delay is {delay!r}; it must be a timedelta and not negative")
        if not (math.isfinite(self.factor) and self.factor >= 1):
            raise NotConfigured(f"a back-off factor is {self.factor!r}; it must be 1 or more")
        if self.jitter not in ("full", "none"):
            raise NotConfigured(f"a back-off jitter is {self.jitter!r}; it must be 'full' or 'none'")

    @classmethod
    def exponential(
        cls,
        base: timedelta = timedelta(seconds=15),
        *,
        cap: timedelta = timedelta(hours=6),
        factor: float = 2,
        jitter: Jitter = "full",
    ) -> Backoff:
        return cls(base=base, cap=cap, factor=factor, jitter=jitter)

    @classmethod
    def constant(cls, delay: timedelta, *, jitter: Jitter = "none") -> Backoff:
        return cls(base=delay, cap=delay, factor=1, jitter=jitter)

    @classmethod
    def sequence(cls, delays: Iterable[timedelta], *, jitter: Jitter = "none") -> Backoff:
        """These delays in turn; the last one repeats. NotConfigured when there is none."""
        steps = tuple(delays)
        if not steps:
            raise NotConfigured("a back-off sequence is empty; it needs at least one delay")
        return cls(base=_NOTHING, cap=max(steps), jitter=jitter, steps=steps)

    def ceiling(self, attempt: int) -> timedelta:
        """The longest delay after failed attempt number `attempt` (from 1)."""
        attempt = max(attempt, 1)
        if self.steps:
            return self.steps[min(attempt, len(self.steps)) - 1]
        try:
            return min(self.cap, self.base * float(self.factor) ** (attempt - 1))
        except OverflowError:  # longer than a timedelta or a float can hold, so longer than any cap
            return self.cap if self.base else _NOTHING

    def delay(self, attempt: int, rng: random.Random | None = None) -> timedelta:
        """How long to wait after failed attempt number `attempt` (from 1); any number is fine, however large."""
        ceiling = self.ceiling(attempt)
        return ceiling if self.jitter == "none" else ceiling * (rng or _RANDOM).random()


def default_backoff() -> Backoff:
    """What a job type without its own gets: SCHEDULER['backoff_base'] doubled up to SCHEDULER['backoff_cap']."""
    return Backoff(base=conf().backoff_base, cap=conf().backoff_cap)
