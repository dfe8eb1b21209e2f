"""What was found, as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.bench.peers import install
from tests.bench.peers.catalogue import OURS, PEERS
from tests.bench.peers.comparison import RATIOS, Comparison

TITLES = {
    "jobs_per_second": "jobs/s",
    "first_start_ms": "first start, ms after T",
    "lateness_p50_ms": "p50, ms late",
    "lateness_p99_ms": "p99, ms late",
    "lateness_max_ms": "most, ms late",
    "bulk_per_second": "bulk, jobs/s",
    "single_p50_ms": "single call p50, ms",
}


def tables(found: Comparison, workloads: Sequence[str], peers: Sequence[str], jobs: int) -> Iterator[str]:
    for workload in workloads:
        yield from _table(found, workload, peers, jobs)
    rows = [
        [
            aim.workload,
            TITLES[aim.figure],
            aim.against,
            _shown(aim.reach.ratio),
            str(aim.reach),
            _met(aim.reach.ratio, aim.reach.met),
        ]
        for aim in found.aims(workloads)
    ]
    yield from _markdown(["workload", "figure", "against", "ours / theirs", "reach", "met"], rows)


def _table(found: Comparison, workload: str, peers: Sequence[str], jobs: int) -> Iterator[str]:
    figures = {
        name: TITLES[name] for peer in peers for name in found.medians(workload, peer) if name in TITLES
    }
    head = [workload]
    if workload != "precision":
        head.append("jobs")
    for name, title in figures.items():
        head += [title, "ours / theirs"] if name in RATIOS[workload] else [title]
    rows = []
    for peer in peers:
        medians = found.medians(workload, peer)
        row = [f"{PEERS[peer].title} {install.version(PEERS[peer])}".removesuffix(" this checkout")]
        if workload != "precision":
            row.append(f"{PEERS[peer].count(jobs):,}")
        for name in figures:
            row.append(_shown(medians.get(name)))
            if name in RATIOS[workload]:
                if spread := found.spread(workload, peer, name):
                    row[-1] += f" ({_shown(spread[0])} to {_shown(spread[1])})"
                row.append("" if peer == OURS else _shown(found.ratio(workload, peer, name)))
        rows.append(row)
    yield from _markdown(head, rows)
    if wrong := [peer for peer in peers if found.medians(workload, peer).get("early")]:
        yield f"Started before they were due: jobs of {', '.join(wrong)}."
        yield ""


def _markdown(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]

    def line(row: list[str]) -> str:
        return f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |"

    yield line(head)
    yield f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    yield from map(line, rows)
    yield ""


def _shown(value: float | None) -> str:
    if value is None:
        return "not measured"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _met(ratio: float | None, met: bool) -> str:
    return "not measured" if ratio is None else "yes" if met else "no"
