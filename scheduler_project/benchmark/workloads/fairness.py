"""fairness: one tenant with an enormous backlog beside 200 quiet ones, the same without it, and the same first in, first
out; then 50 equal backlogs, and tenants of weights 1, 2 and 4.

First in, first out is the same engine with all jobs in one tenant's name: within a tenant that is its order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from jobs.leases.looks import EVERY, PATIENCE
from jobs.models import Tenant
from jobs.tenants import tenant_ids
from scheduler_project.benchmark.fleet import Fleet
from scheduler_project.benchmark.flow import backlog, flow
from scheduler_project.benchmark.report import Report, at_least, at_most
from scheduler_project.benchmark.stage import Stage
from scheduler_project.benchmark.timing import ms, ratio, share

JOBS = 100_000
"""Of the noisy tenant."""
SECONDS, FIFO_SECONDS = 60.0, 5.0
"""For which the quiet ones schedule; so long suffices to see what they wait for first in, first out."""
BODY = 0.01
"""Seconds that each job sleeps: so the backlog lasts about as long as they do."""
QUIET, EVERY_SECONDS = 200, 2.0
EQUAL, EACH = 50, 400
"""Tenants with equal backlogs, and how large these are."""
WEIGHTS = (1, 2, 4)
PER_WEIGHT, EACH_OF_WEIGHT = 10, 400
"""Tenants of each weight, and the backlog of one of weight 1; the others' are as many times as large."""
INTERVAL = EVERY + PATIENCE
"""Seconds between the looks of a claimer that has enough to do: one claim interval."""


def run(stage: Stage) -> Report:
    count = stage.count(JOBS)
    part = min(1.0, count / JOBS)
    quiet = [f"quiet {n}" for n in range(QUIET)]
    stage.checkpoint()
    with stage.fleet() as fleet:
        alone = _quiet(stage, fleet, quiet, SECONDS * part)
        backlogged, due = backlog(stage, [("noisy", BODY)] * count)
        beside = _quiet(stage, fleet, quiet, SECONDS * part)
        stage.client.wait(backlogged, fleet)
        drained = stage.client.now() - due
        backlogged, _ = backlog(stage, [("all", BODY)] * count)
        fifo = _quiet(stage, fleet, ["all"] * QUIET, FIFO_SECONDS * part)
        stage.client.wait(range(backlogged.start, fifo.stop), fleet)
        equal = [f"equal {n}" for n in range(EQUAL)]
        counts = _while_all_wait(stage, fleet, {tenant: max(20, round(EACH * part)) for tenant in equal})
        jain = _jain([counts[tenant] for tenant in equal])
        off = _weights(stage, fleet, part)
    late = {
        name: stage.client.lateness(numbers)
        for name, numbers in (("alone", alone), ("beside", beside), ("fifo", fifo))
    }
    p50, p99 = ({name: share(each, at) for name, each in late.items()} for at in (0.5, 0.99))
    allowed = None if p99["alone"] is None else 1.5 * p99["alone"] + INTERVAL
    return Report(
        workload="fairness",
        parameters=stage.parameters(
            jobs=count,
            quiet_tenants=QUIET,
            every_s=EVERY_SECONDS,
            body_ms=BODY * 1000,
            claim_interval_ms=INTERVAL * 1000,
        ),
        figures={
            **{f"quiet_lateness_p50_ms_{name}": ms(value) for name, value in p50.items()},
            **{f"quiet_lateness_p99_ms_{name}": ms(value) for name, value in p99.items()},
            "quiet_lateness_p99_ms": ms(p99["beside"]),
            "times_better_than_fifo": ratio(p99["fifo"], p99["beside"]),
            "backlog_drained_s": drained,
            "jain_index": jain,
            "weights_off": off,
        },
        floors={
            "quiet_lateness_p99_ms": {
                "value": ms(allowed),
                "unit": "ms: 1.5 x alone + one claim interval",
                "sql": [],
            },
        },
        reaches={
            "quiet_lateness_p99_ms": at_most(1, ratio(p99["beside"], allowed)),
            "times_better_than_fifo": at_least(100, ratio(p99["fifo"], p99["beside"])),
            "jain_index": at_least(0.99, jain),
            "weights_off": at_most(0.05, off),
        },
        verdict=stage.client.judge(),
    )


def _quiet(stage: Stage, fleet: Fleet, tenants: Sequence[str], seconds: float) -> range:
    return flow(stage, fleet, tenants, every=EVERY_SECONDS, body=BODY, seconds=max(EVERY_SECONDS, seconds))


def _while_all_wait(stage: Stage, fleet: Fleet, backlogs: Mapping[str, int]) -> Counter[str]:
    """How many of each tenant had begun when the first of them had nothing left."""
    numbered = [tenant for tenant, number in backlogs.items() for _ in range(number)]
    numbers, _ = backlog(stage, [(tenant, BODY) for tenant in numbered])
    stage.client.wait(numbers, fleet)
    runs = stage.runs(numbers)
    of = {run.number: numbered[run.number - numbers.start] for run in runs}
    last = {of[run.number]: run.begun for run in runs}
    until = min(last.values(), default=0.0)
    return Counter(of[run.number] for run in runs if run.begun <= until)


def _weights(stage: Stage, fleet: Fleet, part: float) -> float:
    """How far the worst class of tenants was from its weight, as a share of it."""
    tenants = {f"weight {weight} {n}": weight for weight in WEIGHTS for n in range(PER_WEIGHT)}
    ids = tenant_ids(tenants)
    for tenant, weight in tenants.items():
        Tenant.objects.filter(pk=ids[tenant]).update(weight=weight)
    each = max(20, round(EACH_OF_WEIGHT * part))
    counts = _while_all_wait(stage, fleet, {tenant: each * weight for tenant, weight in tenants.items()})
    served = Counter[int]()
    for tenant, number in counts.items():
        served[tenants[tenant]] += number
    per_weight = {weight: served[weight] / weight for weight in WEIGHTS}
    mean = sum(served.values()) / sum(WEIGHTS)
    return max(abs(value / mean - 1) for value in per_weight.values())


def _jain(counts: Sequence[int]) -> float:
    return sum(counts) ** 2 / (len(counts) * sum(n * n for n in counts)) if any(counts) else 0.0
