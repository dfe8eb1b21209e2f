"""Standing back: many processes wake for one entry and one gets it. Who keeps coming too late goes into reserve.

In reserve it wakes a moment after an entry's time and looks whether it is still there: that costs a fraction of a claim
in vain, and the more idle processes there are the less each of them wakes. What the others have no room for is found
after the lag; a crowd of entries wakes all at once.
"""

from __future__ import annotations

FIRST, MOST = 0.01, 0.25
"""Seconds by which one in reserve stands back, at first and at most."""


class Reserve:
    def __init__(self) -> None:
        self.lag = 0.0

    def lost(self) -> None:
        """Others took what we woke for."""
        self.lag = min(MOST, max(FIRST, self.lag * 2))

    def won(self) -> None:
        self.lag = self.lag / 2 if self.lag > FIRST else 0.0
