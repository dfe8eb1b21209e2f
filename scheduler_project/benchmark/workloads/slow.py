"""slow: one tenant's jobs take two seconds and fill every thread; the quiet ones' take five milliseconds."""

from __future__ import annotations

import time

from jobs.conf import conf
from scheduler_project.benchmark.flow import backlog, flow
from scheduler_project.benchmark.report import Report, at_most
from scheduler_project.benchmark.runs import busy
from scheduler_project.benchmark.stage import Stage
from scheduler_project.benchmark.timing import ms, ratio, share

SECONDS = 60.0
JOBS = 600
"""Of the noisy tenant: more than all threads get through in that time."""
NOISY, QUIET = 2.0, 0.005
TENANTS, EVERY_SECONDS = 20, 0.5
SETTLED = 5.0
"""Seconds after which the noisy tenant's share must have fallen: what it had begun alone has ended."""


def run(stage: Stage) -> Report:
    count = stage.count(JOBS)
    seconds = max(2 * SETTLED, SECONDS * min(1.0, count / JOBS))
    quiet = [f"quiet {n}" for n in range(TENANTS)]
    stage.checkpoint()
    with stage.fleet() as fleet:
        alone = flow(stage, fleet, quiet, every=EVERY_SECONDS, body=QUIET, seconds=seconds)
        stage.client.wait(alone, fleet)
        noisy, _ = backlog(stage, [("noisy", NOISY)] * count)
        begun = time.monotonic()
        early = flow(stage, fleet, quiet, every=EVERY_SECONDS, body=QUIET, seconds=SETTLED)
        beside = flow(stage, fleet, quiet, every=EVERY_SECONDS, body=QUIET, seconds=seconds - SETTLED)
        ended = time.monotonic()
        stage.client.wait(range(noisy.start, beside.stop), fleet)
    slots = conf().processes * conf().threads
    begin = begun + SETTLED
    noisy_share = busy(stage.runs(noisy), begin, ended) / ((ended - begin) * slots)
    late = {
        name: stage.client.lateness(numbers)
        for name, numbers in (("alone", alone), ("early", early), ("beside", beside))
    }
    p99 = {name: share(each, 0.99) for name, each in late.items()}
    return Report(
        workload="slow",
        parameters=stage.parameters(
            jobs=count,
            noisy_body_s=NOISY,
            quiet_body_ms=QUIET * 1000,
            quiet_tenants=TENANTS,
            every_s=EVERY_SECONDS,
            noisy_share=conf().noisy_share,
        ),
        figures={
            "noisy_share": noisy_share,
            "quiet_lateness_p99_ms": ms(p99["beside"]),
            **{f"quiet_lateness_p50_ms_{name}": ms(share(each, 0.5)) for name, each in late.items()},
            **{f"quiet_lateness_p99_ms_{name}": ms(value) for name, value in p99.items()},
        },
        floors={"quiet_lateness_p99_ms": {"value": ms(p99["alone"]), "unit": "ms alone", "sql": []}},
        reaches={
            "noisy_share": at_most(0.75, noisy_share),
            "quiet_lateness_p99_ms": at_most(2, ratio(p99["beside"], p99["alone"])),
        },
        verdict=stage.client.judge(),
    )
