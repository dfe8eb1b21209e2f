"""A ticker is killed at every step of an expansion: the next one leaves a ledger that checkcron finds clean, and each slot
has run once or is told of."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dispatch.ticker import Ticker
from jobs import clock, verbs
from jobs.models import CronDefinition, CronRun, CronTick, Job
from jobs.reconcile import reconcile
from jobs.tenants import tenant_ids
from tests import commands
from tests.dying import Mortals, mortals
from tests.factories import own_connection
from tests.racing import assert_sound
from tests.ticking import tick_at

pytestmark = [
    pytest.mark.process,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("transactional_db"),
]
MINUTE = timedelta(minutes=1)
STEPS = (
    "enter", "tick: rules", "tick: the ledger", "UPDATE jobs_cronrevision", "tick: definitions", "tick: the runs",
    "tick: which", "tick: the ledger", "tick: what became", "copy_to", "copy_end", "INSERT INTO jobs_cronrun",
    "DELETE FROM jobs_cronrun WHERE job_id", "tick: move", "exit", "cancel, place", "commit", "tick: when",
)  # fmt: skip


@pytest.fixture
def mortal(transactional_db: None, tmp_path: Path) -> Iterator[Mortals]:
    with mortals(commands.environment(), tmp_path) as started:
        yield started


def define(name: str, since: datetime, **options: Any) -> CronDefinition:
    values = {"expression": "* * * * *", "job_type": "test.noop", "last_slot": since, "revised_at": since}
    tenant_id = tenant_ids(["default"])["default"]
    return CronDefinition.objects.create(name=name, tenant_id=tenant_id, **values | options)


def tick(now: datetime) -> None:
    """One pass of a ticker that is not killed and looks at what is stored alone."""
    work = Ticker()
    work._synced = True
    with own_connection() as connection:
        work.run_once(connection, now)


def prepare(number: int) -> datetime:
    """Of everything that a pass does something: slots ahead and late ones, a run in the way, a start that waits and may
    begin now, a run to be cancelled, an edited rule. Returns when the pass takes place."""
    now = clock.now()
    define(f"ahead {number}", now - 5 * MINUTE, misfire="run_all", misfire_grace=timedelta())
    define(f"skip {number}", now - 5 * MINUTE, overlap="skip")
    buffered = define(f"buffer_all {number}", now - 5 * MINUTE, overlap="buffer_all")
    tick(now - 4 * MINUTE)
    define(f"cancel_other {number}", now - 3 * MINUTE, overlap="cancel_other")
    tick(now - 2 * MINUTE)
    running = CronRun.objects.get(definition_id=buffered.pk, job_id__isnull=False)
    assert running.job_id
    verbs.cancel([running.job_id])
    edited = define(f"edited {number}", now - 5 * MINUTE)
    CronDefinition.objects.filter(pk=edited.pk).update(expression="*/2 * * * *")
    return now


def assert_told(now: datetime) -> None:
    """Every slot once, also in the jobs, and every job in one place."""
    assert reconcile(now - timedelta(hours=1), now=now).breaches == []
    ran = CronTick.objects.filter(slot__gt=now - timedelta(hours=1), outcome__in=["fired", "late"])
    jobs = Job.objects.due_between(now - timedelta(hours=1), now + timedelta(hours=1)).filter(
        slot__isnull=False
    )
    replaced = CronTick.objects.filter(slot__gt=now - timedelta(hours=1), outcome="replaced").count()
    assert jobs.values("cron_id", "slot").distinct().count() <= jobs.count() == ran.count() + replaced


def test_mi_03_a_ticker_killed_at_any_step_leaves_a_clean_ledger(mortal: Mortals) -> None:
    visited = list[str]()
    for number in count():
        now = prepare(number)
        if (trip := mortal.strike(partial(tick_at, now), number, sent=False)) is None:
            break
        visited.append(trip)
        if trip.startswith("exit"):
            now = prepare(number + 1000)
            assert mortal.strike(partial(tick_at, now), number, sent=True) == trip
        tick(now)
        tick(now)
        assert_told(now)
        CronDefinition.objects.update(enabled=False)  # else the next passes have ever more to do
    assert_sound()
    points = iter(visited)
    assert all(any(step in point for point in points) for step in STEPS), visited
