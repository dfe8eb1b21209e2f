"""cron: definitions of 50 tenants that all fire at one minute T, written ahead of it by the dispatcher; and what a
ticker's pass costs beside few and beside many whose slots lie elsewhere."""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dispatch.ticker import Ticker
from jobs import clock, db
from jobs.conf import conf
from jobs.models import Job
from jobs.reconcile import reconcile
from scheduler_project.benchmark import definitions
from scheduler_project.benchmark.fleet import Failed, Fleet
from scheduler_project.benchmark.meter import Meter, Reading
from scheduler_project.benchmark.report import Report, at_most
from scheduler_project.benchmark.stage import Stage
from scheduler_project.benchmark.timing import ms, ratio, share

JOBS = 100_000
RULES = 0.2
"""Different rules per definition."""
CROWD, FEW = 10.0, 0.01
"""Definitions of the crowd per definition that fires, and of the few that it is compared with."""
ROUNDS, PASSES = 20, 5
SLOWER = 1.5
"""Than rehearsed: meanwhile the dispatcher works out their slots."""
SPARE = 5.0
LEAST_AHEAD = 5.0
"""Seconds ahead that a handful of definitions is written."""
LATE = 60.0
"""Seconds after T at which what is not written yet is given up."""
LOOK = 0.05


@dataclass(frozen=True)
class Fired:
    numbers: range
    seconds: float
    """From T until no job was left unfinished."""
    written_s: float
    """From when they were to be written ahead until all were."""
    before: Reading
    written: Reading
    after: Reading


def run(stage: Stage) -> Report:
    count = stage.count(JOBS)
    few, many = (max(1, round(count * part)) for part in (FEW, CROWD))
    few_ms, many_ms = _passes(stage, few, many)
    ahead = _set_ahead(min(1.0, count / JOBS))
    begun = clock.now()
    stage.checkpoint()
    with stage.fleet() as fleet:
        meter = Meter(stage.connection, fleet.pids)
        fired = _fire(stage, fleet, meter, count, ahead)
    cost = meter.with_all_commits(fired.after) - fired.before
    lateness = stage.client.lateness(fired.numbers)
    p99 = share(lateness, 0.99)
    writing = (fired.written - fired.before).per_job(count)
    return Report(
        workload="cron",
        parameters=stage.parameters(
            jobs=count,
            dispatchers=1,
            different_rules=max(1, round(count * RULES)),
            written_ahead_s=ahead,
            few=few,
            many=many,
        ),
        figures={
            "written_s": fired.written_s,
            "lateness_p50_s": share(lateness, 0.5),
            "lateness_p99_s": p99,
            "drained_s": fired.seconds,
            "pass_ms": many_ms,
            "server_cpu_us_per_definition": writing["server_cpu_us_per_job"],
            "python_cpu_us_per_definition": writing["python_cpu_us_per_job"],
            **cost.per_job(count),
        },
        floors={
            "written_s": {"value": ahead, "unit": "s that jobs are written ahead", "sql": []},
            "lateness_p99_s": {"value": 1.0, "unit": "s", "sql": []},
            "pass_ms": {"value": few_ms, "unit": f"ms beside {few:,}", "sql": []},
        },
        reaches={
            "written_s": at_most(1, fired.written_s / ahead),
            "lateness_p99_s": at_most(30, p99),
            "pass_ms": at_most(1.2, ratio(many_ms, few_ms)),
        },
        verdict=_judge(stage, begun),
    )


def _passes(stage: Stage, few: int, many: int) -> tuple[float, float]:
    """Median milliseconds of a pass that finds nothing due, beside so many: in turns, as the machine changes its mind."""
    times: dict[int, list[float]] = {many: [], few: []}
    with db.connect(name="punctual tick") as connection:
        definitions.crowd(connection, few, many)
        stage.say(f"{few:,} and {many:,} definitions that wait for the coming day")
        for turn in range(2 * ROUNDS):
            count, ticker = (many, few)[turn % 2], Ticker()
            for number in range(PASSES + 1):
                now, at = clock.now(), time.perf_counter()
                ticker.run_once(connection, now)
                if number:  # the first looks at more than the others
                    times[count].append(time.perf_counter() - at)
            definitions.swap(connection)
        definitions.disperse(connection)
    few_ms, many_ms = (ms(statistics.median(times[count])) or 0.0 for count in (few, many))
    stage.say(f"a pass takes {few_ms} ms beside {few:,}, {many_ms} ms beside {many:,}")
    return few_ms, many_ms


def _set_ahead(part: float) -> float:
    """Seconds that the dispatcher writes ahead: its default, and less for fewer definitions than the workload's own."""
    ahead = conf().cron_ahead.total_seconds()
    if part < 1.0:
        ahead = max(LEAST_AHEAD, round(ahead * part, 1))
        os.environ["SCHEDULER_CRON_AHEAD"] = str(ahead)
    return ahead


def _fire(stage: Stage, fleet: Fleet, meter: Meter, count: int, ahead: float) -> Fired:
    client = stage.client
    due = _minute_after(client.now() + SLOWER * definitions.rehearse(count) + SPARE + ahead)
    slot, begin = datetime.fromtimestamp(due, UTC), due - ahead
    numbers = client.expect([due] * count)
    for done in definitions.define(numbers, slot, max(1, round(count * RULES))):
        if done % 20_000 == 0:
            stage.say(f"{done:,} of {count:,} definitions written")
    _wait_for_looks(stage, fleet, slot - timedelta(seconds=ahead), begin)
    stage.say(f"{count:,} definitions, to be written ahead in {begin - client.now():.1f} s")
    time.sleep(max(0.0, begin - SPARE / 5 - client.now()))
    before = meter.read()
    _wait_for_looks(stage, fleet, slot, due + LATE)
    written_s, written = client.now() - begin, meter.read()
    there = Job.objects.filter(due_at=slot).count()
    stage.say(f"{there:,} jobs written ahead in {written_s:.1f} s")
    seconds = client.wait(numbers, fleet) - due
    stage.say(f"drained in {seconds:.2f} s")
    return Fired(numbers, seconds, written_s, before, written, meter.read())


def _minute_after(moment: float) -> float:
    return (moment // 60 + 1) * 60


def _wait_for_looks(stage: Stage, fleet: Fleet, before: datetime, until: float) -> None:
    """Until no definition is to be looked at before then; Failed when that takes longer than `until`."""
    while _is_any_due(stage, before):
        fleet.check()
        if stage.client.now() > until:
            raise Failed("the definitions were not expanded in time; try fewer by --jobs")
        time.sleep(LOOK)


def _is_any_due(stage: Stage, before: datetime) -> bool:
    found = stage.connection.execute(
        "SELECT FROM jobs_crondefinition WHERE enabled AND broken = '' AND look_at < %s LIMIT 1", [before]
    )
    return found.fetchone() is not None


def _judge(stage: Stage, begun: datetime) -> dict[str, int]:
    """As always; what checkcron finds is lost as well."""
    found = reconcile(begun - timedelta(minutes=1), span=timedelta(days=1))
    stage.say(f"checkcron: {found.expected:,} slots expected, {len(found.breaches):,} breaches")
    for breach in found.breaches[:10]:
        stage.say(breach)
    verdict = stage.client.judge()
    return verdict | {"lost": verdict["lost"] + len(found.breaches)}
