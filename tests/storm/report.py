"""The table at the end."""

from __future__ import annotations

from collections.abc import Iterator

from tests.storm.judge import Verdict
from tests.storm.notes import Notes

Row = tuple[str, str, str]


def table(
    verdict: Verdict, notes: Notes, *, seed: int, throughput: tuple[float, float], restarts: int
) -> str:
    """Ends with the line that counts: `lost 0`."""
    rows = [*_faults(verdict), *_rows(verdict, notes, throughput, restarts)]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"  {name:<{widths[0]}}  {value:>{widths[1]}}  {note}".rstrip() for name, value, note in rows]
    return "\n".join([*lines, "", *_recoveries(verdict), "", f"seed {seed}", f"lost {len(verdict.lost)}"])


def _recoveries(verdict: Verdict) -> Iterator[str]:
    """Seconds from the end of each kind of fault until all that it held up had started."""
    width = max(map(len, verdict.recoveries), default=0)
    if width:
        yield f"  {'recovery, seconds':<{width}}  median   most  of (alone)"
    for name, found in sorted(verdict.recoveries.items()):
        yield (
            f"  {name:<{width}}  {found.median:6.1f} {found.most:6.1f}  {found.strikes} ({len(found.alone)})"
        )


def _faults(verdict: Verdict) -> Iterator[Row]:
    for name, hits in sorted(verdict.hits.items()):
        yield name, f"{len(hits)} x", f"{sum(hits)} runs under way"


def _rows(verdict: Verdict, notes: Notes, throughput: tuple[float, float], restarts: int) -> Iterator[Row]:
    before, after = throughput
    yield (
        "promised",
        f"{verdict.promised:,}",
        f"ids that schedule() returned; {notes.refused} calls were refused",
    )
    for state, count in sorted(verdict.ended.items()):
        yield state, f"{count:,}", ""
    yield "failed by crashes", f"{verdict.crashed_out}", "their process died three times: visibly failed"
    yield "runs", f"{verdict.runs:,}", ""
    yield "runs in excess", f"{verdict.excess}", f"of {verdict.in_flight} that were under way at a fault"
    for name, (most, limit) in sorted(verdict.most.items()):
        yield f"most of {name}", f"{most}", f"{limit} allowed"
    yield "atomic jobs", f"{verdict.atomic}", "the effects of each exactly once"
    yield "cancels confirmed", f"{len(notes.cancels)}", ""
    yield "processes started anew", f"{restarts}", ""
    ratio = after / before if before else 0.0
    yield "throughput after / before", f"{ratio:.2f}", f"{after:.1f} and {before:.1f} jobs/s"
    yield "complaints", f"{len(verdict.complaints)}", ""
