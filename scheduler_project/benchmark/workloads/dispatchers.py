"""dispatchers: the burst with more and more dispatcher processes beside one worker; what many cost each other."""

from __future__ import annotations

from scheduler_project.benchmark.fleet import Failed
from scheduler_project.benchmark.meter import Meter
from scheduler_project.benchmark.report import Report, at_least
from scheduler_project.benchmark.stage import Stage
from scheduler_project.benchmark.workloads import burst

POINTS = (1, 2, 5, 10, 20)
BURSTS = 2
"""At each point; the figure is the better one."""
SESSIONS_EACH, SESSIONS_ELSE = 11, 20
"""Connections that a dispatcher may have open at once, and all others together."""


def run(stage: Stage) -> Report:
    count = stage.count(burst.JOBS)
    _require_sessions(stage, SESSIONS_EACH * POINTS[-1] + SESSIONS_ELSE)
    rates: dict[int, float] = {}
    costs: dict[str, float | None] = {}
    stage.checkpoint()
    with stage.fleet(POINTS[0]) as fleet:
        running = POINTS[0]
        for point in POINTS:
            fleet.add_dispatchers(point - running)
            running = point
            fleet.wait_until_idle()
            stage.say(f"{point} of them")
            meter = Meter(stage.connection, fleet.pids)
            bursts = [burst.drain(stage, fleet, meter, count) for _ in range(BURSTS)]
            rates[point] = max(each.per_second for each in bursts)
            cost = bursts[-1].after - bursts[-1].before
            costs |= {f"{name}_{point}": value for name, value in cost.per_job(count).items()}
    best = max(rates.values())
    return Report(
        workload="dispatchers",
        parameters=stage.parameters(jobs=count, bursts=BURSTS, dispatchers=POINTS),
        figures={**{f"jobs_per_second_{point}": rate for point, rate in rates.items()}, **costs},
        floors={"best_point": {"value": best, "unit": "jobs per second", "sql": []}},
        reaches={f"jobs_per_second_{POINTS[-1]}": at_least(0.85, rates[POINTS[-1]] / best)},
        verdict=stage.client.judge(),
    )


def _require_sessions(stage: Stage, wanted: int) -> None:
    row = stage.connection.execute(
        "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int "
        "- count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    ).fetchone()
    if row and row[0] < wanted:
        raise Failed(f"{POINTS[-1]} dispatchers need {wanted} connections; the server has {row[0]} to spare")
