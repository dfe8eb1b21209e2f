"""How many sessions a fleet has at the server, at the most: the formula of docs/faults.md."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.db import connections

from dispatch.leaks import OWN
from dispatch.management.commands.rundispatcher import LOOPS
from jobs.models import CronDefinition, Job, QueueEntry
from jobs.newjob import NewJob
from jobs.tenants import tenant_ids
from tests.commands import Commands
from tests.racing import assert_sound
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

PROCESSES, THREADS = 2, 3
WORKER = 1 + PROCESSES * (OWN + THREADS)
"""The supervisor's; of each child two of its own and one for each thread whose body has used the database."""
BESIDE = 1
"""A body may have one more for a moment: a tenant or a day is made, a commit in doubt is asked for."""
DAYS = 2
"""To make and drop days: the upkeep's and the ticker's."""
DISPATCHER = 1 + len(LOOPS) + 2 + DAYS
"""Its heartbeat's, one for each loop, and two loops work on Django's as well."""
BRIEF = ["punctual tenants", "punctual partitions"]
"""They come and go. The server may show one that was closed for a moment longer, so those count that do something."""


def test_no_fleet_has_more_sessions_than_the_formula_says(commands: Commands) -> None:
    workers = [commands.worker(processes=PROCESSES, threads=THREADS) for _ in range(2)]
    dispatchers = [commands.dispatcher() for _ in range(2)]
    tenant_id = tenant_ids(["default"])["default"]
    for n in range(5):
        CronDefinition.objects.create(
            name=f"c{n}", tenant_id=tenant_id, every=timedelta(seconds=1), job_type="test.queries"
        )
    kinds = [
        NewJob(job_type="test.queries", group="load"),
        NewJob(job_type="test.atomic", payload={"slug": "s"}, group="load"),
        NewJob(job_type="test.noop", group="load"),
    ]
    Job.objects.schedule_many(kinds * 400)
    most: Counter[str] = Counter()

    def done() -> bool:
        for kind, count in sessions().items():
            most[kind] = max(most[kind], count)
        return not QueueEntry.objects.filter(group="load").exists()

    wait_until(done, timeout=120)
    assert 0 < most["worker"] <= len(workers) * (WORKER + PROCESSES * THREADS * BESIDE)
    assert 0 < most["dispatcher"] <= len(dispatchers) * (DISPATCHER - DAYS)
    assert most["brief"] <= len(dispatchers) * DAYS
    assert most["worker"] + most["dispatcher"] <= 2 * (WORKER + DISPATCHER)
    CronDefinition.objects.update(enabled=False)
    assert_sound()


def sessions() -> Counter[str]:
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "SELECT CASE WHEN application_name = ANY(%(brief)s) THEN 'brief' "
            "WHEN application_name ~ '^punctual (worker|supervisor)' THEN 'worker' ELSE 'dispatcher' END, count(*) "
            "FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'punctual%%' "
            "AND pid <> pg_backend_pid() AND (application_name <> ALL(%(brief)s) OR state = 'active') GROUP BY 1",
            {"brief": BRIEF},
        )
        return Counter(dict(cursor.fetchall()))
