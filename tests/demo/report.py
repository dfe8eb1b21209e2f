"""The table at the end."""

from __future__ import annotations

from collections.abc import Iterator

from tests.demo.environment import LEASE
from tests.demo.judge import Verdict

Row = tuple[str, str, str]


def table(verdict: Verdict, *, checkjobs: str) -> str:
    """Ends with the line that counts: `lost 0`."""
    rows = [*_rows(verdict), ("checkjobs", checkjobs, "every job is in exactly one place")]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"  {name:<{widths[0]}}  {value:>{widths[1]}}  {note}".rstrip() for name, value, note in rows]
    return "\n".join([*lines, "", f"lost {len(verdict.lost)}"])


def _rows(verdict: Verdict) -> Iterator[Row]:
    yield "scheduled", f"{verdict.scheduled:,}", "ids that schedule() returned"
    yield "completed", f"{verdict.completed:,}", "have a finished run in the ledger"
    yield "retried", f"{verdict.retried:,}", "failed at first and came back after a pause"
    yield "failed", f"{verdict.failed:,}", "the poison job: given up after it had killed three processes"
    twice = f"{verdict.finished_twice:,} of them had finished, but nobody knew: at least once"
    yield "run again after a crash", f"{verdict.run_again:,}", twice
    yield "cron slots", f"{verdict.slots_fired:,}", "all that were owed, with those from before the start"
    if verdict.lateness:
        yield "lateness p50", _ms(verdict.late(0.5)), "first start minus due time"
        yield "lateness p99", _ms(verdict.late(0.99)), ""
        yield (
            "lateness max",
            _ms(verdict.late(1.0)),
            f"held by the killed worker until its lease of {LEASE} s was over, then in line again",
        )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"
