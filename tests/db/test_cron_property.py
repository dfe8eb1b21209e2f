"""Whatever operators, clocks and runs do to a definition: each expected slot is told of exactly once, every run has its
slot, and never do two run at once where they must not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import clock, verbs
from jobs.models import CronDefinition, CronTick, Job
from jobs.reconcile import reconcile
from jobs.sql import load
from tests.db.test_ticker import MINUTE, by_sql, define, tick
from tests.factories import DjangosConnection
from tests.searching import examples

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
    st.tuples(st.just("tick"), st.sampled_from([0, 0.02, 1, 1, 70, 500])),
    st.tuples(st.just("edit"), st.sampled_from([{"priority": 1}, {"priority": 2}, OTHER])),
    st.tuples(st.sampled_from(["pause", "resume", "end runs", "run now", "backfill"]), st.none()),
)


class World:
    def __init__(self, options: dict[str, Any]) -> None:
        self.here: Any = DjangosConnection()
        self.now = self.start = clock.now() - timedelta(days=1)
        self._tell_time()
        self.definition = define(last_slot=self.start, **options)
        by_sql(self.definition, revised_at=self.start)
        self.alone = options["overlap"] != "allow_all"

    def do(self, name: str, value: Any) -> None:
        act: Callable[[Any], None] = getattr(self, "_" + name.replace(" ", "_"))
        act(value)
        if self.alone:
            asked = CronTick.objects.filter(outcome__in=["manual", "backfilled"]).values_list(
                "job_id", flat=True
            )
            assert len(self._unfinished() - set(asked)) <= 1

    def _unfinished(self) -> set[UUID]:
        jobs = Job.objects.with_state(self.start - MINUTE, self.now + timedelta(days=2)).filter(
            slot__isnull=False
        )
        return {pk for pk, state in jobs.values_list("pk", "state") if state != "cancelled"}

    def _tell_time(self) -> None:
        self.here.execute("SELECT set_config('test.now', %s, true)", [self.now.isoformat()])

    def _tick(self, minutes: float) -> None:
        self.now += minutes * MINUTE
        self._tell_time()
        tick(self.here, self.now)

    def _edit(self, change: dict[str, Any]) -> None:
        by_sql(self.definition, **change)

    def _pause(self, _: None) -> None:
        self.definition.pause()

    def _resume(self, _: None) -> None:
        self.definition.resume()

    def _end_runs(self, _: None) -> None:
        verbs.cancel(list(self._unfinished()))

    def _run_now(self, _: None) -> None:
        self.definition.run_now()

    def _backfill(self, _: None) -> None:
        self.definition.backfill(self.start - 10 * MINUTE, self.start - MINUTE, rate=1000)


@pytest.fixture
def by_its_clock(here: Connection) -> None:
    """The trigger goes by the time of the test, until the test is rolled back."""
    text = load("schema/cron_trigger").partition("CREATE TRIGGER")[0]
    assert text.count("moment timestamptz := clock_timestamp()") == 1
    changed: Any = text.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION").replace(
        "moment timestamptz := clock_timestamp()",
        "moment timestamptz := current_setting('test.now')::timestamptz",
    )
    here.execute(changed)


@pytest.mark.usefixtures("by_its_clock")
@settings(
    max_examples=examples(200),
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
    steps=st.lists(STEPS, max_size=8),
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
        for _ in range(3):  # what is asked of one look may take another
            world.do("tick", 0)
        found = reconcile(world.start - 20 * MINUTE, now=world.now, span=timedelta(days=3))
        assert found.breaches == [], steps
        transaction.set_rollback(True)
    assert not CronDefinition.objects.exists()
