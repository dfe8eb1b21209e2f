"""Whatever operators, clocks and runs do to a definition: each expected slot is told of exactly once, every run has its
slot, and never do two run at once where they must not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import psycopg
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import clock, verbs
from jobs.models import CronDefinition, CronTick, Job
from jobs.reconcile import reconcile
from tests.db.test_ticker import MINUTE, by_sql, define, tick
from tests.factories import DjangosConnection

Connection = psycopg.Connection[Any]
Step = tuple[str, Any]

RULES: dict[str, dict[str, Any]] = {
    "minutely": {"expression": "* * * * *"},
    "now and then": {"expression": "*/7 * * * *"},
    "never in March": {"expression": "*/3 * * 1-2,4-12 *"},
    "interval": {"expression": "", "every": timedelta(seconds=47)},
}
OTHER = {"expression": "*/5 * * * *", "every": None}
STEPS = st.one_of(
    st.tuples(st.just("tick"), st.floats(0, 4)),
    st.tuples(st.just("tick"), st.sampled_from([0, 0.02, 1, 1, 70, 1600])),
    st.tuples(st.just("edit"), st.sampled_from([{"priority": 1}, {"priority": 2}, OTHER])),
    st.tuples(st.sampled_from(["pause", "resume", "end runs", "run now", "backfill"]), st.none()),
)


class World:
    def __init__(self, options: dict[str, Any]) -> None:
        self.here: Any = DjangosConnection()
        self.now = self.start = clock.now()
        self.definition = define(last_slot=self.start, **options)
        by_sql(self.definition, revised_at=self.start)
        self.alone = options["overlap"] != "allow_all"

    def do(self, name: str, value: Any) -> None:
        act: Callable[[Any], None] = getattr(self, "_" + name.replace(" ", "_"))
        act(value)
        if self.alone:
            runs = Job.objects.due_between(self.start - MINUTE, self._end()).filter(slot__isnull=False)
            asked = CronTick.objects.filter(outcome__in=["manual", "backfilled"]).values("job_id")
            assert sum(job.state not in ("cancelled", "completed") for job in runs.exclude(pk__in=asked)) <= 1

    def _end(self) -> datetime:
        return self.now + timedelta(days=2)

    def _tick(self, minutes: float) -> None:
        self.now += minutes * MINUTE
        for _ in range(3):
            tick(self.here, self.now)

    def _edit(self, change: dict[str, Any]) -> None:
        by_sql(self.definition, **change)

    def _pause(self, _: None) -> None:
        self.definition.pause()

    def _resume(self, _: None) -> None:
        self.definition.resume()

    def _end_runs(self, _: None) -> None:
        ids = Job.objects.due_between(self.start - MINUTE, self.now).values_list("pk", flat=True)
        verbs.cancel(list(ids))

    def _run_now(self, _: None) -> None:
        self.definition.run_now()

    def _backfill(self, _: None) -> None:
        self.definition.backfill(self.start - 10 * MINUTE, self.start - MINUTE, rate=1000)


@settings(
    max_examples=200,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    rule=st.sampled_from(sorted(RULES)),
    overlap=st.sampled_from(["allow_all", "skip", "buffer_one", "buffer_all", "cancel_other"]),
    misfire=st.sampled_from(["run_once", "run_all", "skip"]),
    max_runs=st.sampled_from([None, None, 2, 5]),
    steps=st.lists(STEPS, max_size=10),
)
def test_every_slot_is_told_of_once_whatever_happens(
    here: Connection, rule: str, overlap: str, misfire: str, max_runs: int | None, steps: list[Step]
) -> None:
    options = {
        "overlap": overlap,
        "misfire": misfire,
        "max_runs": max_runs,
        "catchup_limit": 20,
        **RULES[rule],
    }
    with transaction.atomic():
        world = World(options)
        for step in steps:
            world.do(*step)
        world.do("tick", 0)
        found = reconcile(world.start - 20 * MINUTE, now=world.now)
        assert found.breaches == [], steps
        transaction.set_rollback(True)
    assert not CronDefinition.objects.exists()
