"""limits: 50 tenants that may have 1 to 4 jobs at once, under 20 claimers; judged by when the handlers say they ran.

What a limit costs is measured on one claimer: the CPU that the server spends on its claims, with and without limits, in
turns.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from jobs import db
from jobs.leases import Claimer, register, settle
from jobs.models import ProcessKind, Tenant
from jobs.results import Completed, Settlement
from jobs.tenants import tenant_ids
from scheduler_project.benchmark.flow import backlog
from scheduler_project.benchmark.meter import Meter
from scheduler_project.benchmark.report import Report, at_least, at_most
from scheduler_project.benchmark.runs import Run, busy, most_at_once
from scheduler_project.benchmark.stage import Stage
from scheduler_project.benchmark.timing import ratio
from scheduler_project.benchmark.work.tasks import NOOP

Connection = psycopg.Connection[Any]

TENANTS, CLAIMERS = 50, 20
SECONDS = 60.0
BODIES = (0.1, 0.5)
LIMITS = {f"limited {n}": n % 4 + 1 for n in range(TENANTS)}
PER_SLOT = SECONDS / (sum(BODIES) / 2)
JOBS = round(sum(LIMITS.values()) * PER_SLOT)
STARTED = 2.0
"""Seconds after which all slots must be in use."""
COSTS, TURNS = "costs", 12
"""A queue of its own that no worker serves, and how often either kind of claim is measured."""


def run(stage: Stage) -> Report:
    count = stage.count(JOBS)
    for tenant, most in LIMITS.items():
        Tenant.objects.filter(pk=tenant_ids([tenant])[tenant]).update(max_running=most)
    sleeps = [
        (tenant, random.uniform(*BODIES))  # noqa: S311
        for tenant, most in LIMITS.items()
        for _ in range(max(1, round(count * most / sum(LIMITS.values()))))
    ]
    stage.checkpoint()
    with stage.fleet(processes=CLAIMERS) as fleet:
        meter = Meter(stage.connection, fleet.pids)
        numbers, _ = backlog(stage, sleeps)
        before = meter.read()
        stage.client.wait(numbers, fleet)
        spent = meter.read() - before
    runs = defaultdict[str, list[Run]](list)
    for each in stage.runs(numbers):
        runs[sleeps[each.number - numbers.start][0]].append(each)
    highest = {tenant: most_at_once(some) for tenant, some in runs.items()}
    violations = sum(max(0, highest[tenant] - LIMITS[tenant]) for tenant in highest)
    used = _slots_used(runs)
    limited, unlimited = _costs(stage)
    return Report(
        workload="limits",
        parameters=stage.parameters(
            jobs=len(sleeps),
            limited_tenants=TENANTS,
            claimers=CLAIMERS,
            bodies_s=BODIES,
            slots=sum(LIMITS.values()),
        ),
        figures={
            "violations": violations,
            "tenants_at_their_limit": sum(highest[tenant] == LIMITS[tenant] for tenant in highest),
            "slots_used": used,
            "claim_cpu_us_per_job": limited,
            "claim_cpu_us_per_job_unlimited": unlimited,
            **spent.per_job(len(sleeps)),
        },
        floors={"claim_cpu_us_per_job": {"value": unlimited, "unit": "us without limits", "sql": []}},
        reaches={
            "violations": at_most(0, float(violations)),
            "slots_used": at_least(0.95, used),
            "claim_cpu_us_per_job": at_most(1.5, ratio(limited, unlimited)),
        },
        verdict=stage.client.judge(),
    )


def _slots_used(runs: dict[str, list[Run]]) -> float | None:
    """Of the slots that the limits allow, from when all have begun until the first tenant has begun its last."""
    begun = min((some[0].begun for some in runs.values()), default=0.0)
    end = min((some[-1].begun for some in runs.values()), default=0.0)
    begin = min(begun + STARTED, (begun + end) / 2)
    if end <= begin:
        return None
    allowed = sum(LIMITS[tenant] for tenant in runs) * (end - begin)
    return sum(busy(some, begin, end) for some in runs.values()) / allowed


def _costs(stage: Stage) -> tuple[float | None, float | None]:
    """Microseconds of the server's CPU per job claimed, limited and not."""
    slots = sum(LIMITS.values())
    free = [f"free {n}" for n in range(TENANTS)]
    with db.connect(name="claims", generic=True) as connection:
        process_id = register(connection, ProcessKind.WORKER, types=[NOOP])
        found: dict[str, list[float]] = {}
        for kind, tenants in (("limited", list(LIMITS)), ("free", free)):
            found[kind] = []
            limits = list(LIMITS.values())
            stage.client.schedule_elsewhere(
                f"{COSTS} {kind}",
                [
                    tenant
                    for tenant, most in zip(tenants, limits, strict=True)
                    for _ in range(most * (TURNS + 3))
                ],
            )
        claimers = {kind: Claimer(f"{COSTS} {kind}", process_id, [NOOP]) for kind in found}
        for turn in range(TURNS + 2):
            for kind, claimer in claimers.items():
                before = _cpu(connection)
                taken = claimer.claim(connection, slots, slots)
                after = _cpu(connection)
                if before is None or after is None:
                    return None, None
                if turn >= 2 and taken:  # the first learn and plan
                    found[kind].append((after - before) / len(taken))
                settle(connection, [Settlement(each.held, Completed(), None) for each in taken])
                for each in taken:
                    claimer.settled(each.tenant_id)
                    stage.client.ledger.note(json.loads(each.payload or "{}")["number"])
        for claimer in claimers.values():  # the rest, so that nothing is left
            while taken := claimer.claim(connection, slots, slots):
                settle(connection, [Settlement(each.held, Completed(), None) for each in taken])
                for each in taken:
                    claimer.settled(each.tenant_id)
                    stage.client.ledger.note(json.loads(each.payload or "{}")["number"])
    middle = {kind: sorted(some)[len(some) // 2] if some else None for kind, some in found.items()}
    return middle["limited"], middle["free"]


def _cpu(connection: Connection) -> float | None:
    """Microseconds that this connection's backend has been on a CPU, where it can be seen."""
    with suppress(OSError):
        return int(Path(f"/proc/{connection.info.backend_pid}/schedstat").read_text().split()[0]) / 1000
    return None
