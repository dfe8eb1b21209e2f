"""What a verb on many jobs did: counts an operator can read, never more than it looked at."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Self


@dataclass
class Report:
    changed: int = 0
    """Jobs the verb moved."""
    requested: int = 0
    """Running jobs that were asked to stop; they end as cancelled, or completed if that came first."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Jobs left alone, by reason."""

    def __iadd__(self, other: Report) -> Self:
        self.changed += other.changed
        self.requested += other.requested
        self.skipped += other.skipped
        return self

    def describe(self, done: str) -> str:
        """One sentence, as in `3 retried, 4 skipped (2 completed, 2 running)`."""
        parts = [f"{self.changed} {done}"]
        if self.requested:
            parts.append(f"{self.requested} running asked to stop")
        if total := self.skipped.total():
            reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(self.skipped.items()))
            parts.append(f"{total} skipped ({reasons})")
        return ", ".join(parts)
