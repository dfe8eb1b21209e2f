"""Every verb on jobs with concurrency keys, in random order: after each step as many of a key have a place as it allows,
or as there are that are due, and never more."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, LiteralString
from uuid import UUID

import pytest
from django.db import connections
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dispatch.admitter import Admitter
from dispatch.dispatcher import Dispatcher
from dispatch.holder import Holder
from jobs import clock, db, tenants, verbs
from jobs.holds import hold, lift, standing
from jobs.leases import Claimer, admit, end, park, rescue, settle, unpark
from jobs.models import Hold, Job, QueueEntry
from jobs.registry import registry
from jobs.results import Completed, Held, Released, Result, Settlement, Snoozed
from tests.emptying import empty_tables
from tests.factories import failed, process, server_time
from tests.keyed import allow
from tests.racing import Connection, assert_sound

pytestmark = [pytest.mark.concurrency, pytest.mark.usefixtures("transactional_db")]
HOUR = timedelta(hours=1)
MOST = {"test.noop": 1, "test.echo": 2}
LINES: LiteralString = """
    SELECT concurrency_key, job_type, count(*) FILTER (WHERE parked IS NULL),
        count(*) FILTER (WHERE parked = 'key' AND run_at <= clock_timestamp())
    FROM jobs_queueentry GROUP BY 1, 2
"""
pick = st.integers(0, 99)


class Keys(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        connections["default"].ensure_connection()
        raw: Any = db.ServerBound(connections["default"].connection)
        self.connection: Connection = raw
        allow(self.connection, 2, "test.echo")
        self.mine = process(self.connection)
        self.held: dict[UUID, Held] = {}

    def teardown(self) -> None:
        empty_tables()
        tenants.forget()

    def waiting(self, n: int) -> list[UUID]:
        ids = list(
            QueueEntry.objects.filter(lease_token=None).order_by("job_id").values_list("job_id", flat=True)
        )
        return [ids[n % len(ids)]] if ids else []

    @rule(
        kind=st.sampled_from(sorted(MOST)),
        name=st.sampled_from("ab"),
        priority=st.integers(0, 2),
        when=st.integers(-1, 1),
    )
    def schedule(self, kind: str, name: str, priority: int, when: int) -> None:
        """A key of its own for each type: what types share is told elsewhere."""
        due_at = clock.now() + when * HOUR
        Job.objects.schedule(
            kind,
            due_at=due_at,
            priority=priority,
            group=name,
            max_attempts=3,
            concurrency_key=f"{kind} {name}",
        )

    @rule()
    def dispatch(self) -> None:
        Dispatcher().run_once(self.connection, clock.now() + 2 * HOUR)

    @rule(size=st.integers(1, 3), kind=st.sampled_from(sorted(MOST)))
    def claim(self, size: int, kind: str) -> None:
        for each in Claimer(kind, self.mine, registry.names()).claim(self.connection, size, size):
            assert each.held.key
            self.held[each.held.job_id] = each.held

    @precondition(lambda self: self.held)
    @rule(n=pick, kind=st.integers(0, 5))
    def settle(self, n: int, kind: int) -> None:
        held = self.held.pop(sorted(self.held)[n % len(self.held)])
        results: list[Result] = [
            Completed(), Released(), Snoozed(HOUR), Snoozed(timedelta()), failed(after=timedelta()), failed(),
        ]  # fmt: skip
        admit(self.connection, settle(self.connection, [Settlement(held, results[kind], None)]).keys)

    @precondition(lambda self: self.held)
    @rule()
    def crash(self) -> None:
        end(self.connection, [self.mine])
        admit(self.connection, rescue(self.connection).keys)
        self.held.clear()
        self.mine = process(self.connection)

    @rule(n=pick)
    def cancel(self, n: int) -> None:
        verbs.cancel(self.waiting(n))

    @rule()
    def retry(self) -> None:
        verbs.retry(self.ended())

    def ended(self) -> list[UUID]:
        rows = self.connection.execute("SELECT job_id FROM jobs_outcome ORDER BY job_id LIMIT 2").fetchall()
        return [job_id for (job_id,) in rows]

    @rule(n=pick, later=st.booleans())
    def reschedule(self, n: int, later: bool) -> None:
        verbs.reschedule(self.waiting(n), clock.now() + HOUR if later else clock.now())

    @rule(n=pick)
    def time_passes(self, n: int) -> None:
        QueueEntry.objects.filter(job_id__in=self.waiting(n)).update(run_at=clock.now())
        self.sweep()

    @rule(kind=st.sampled_from(sorted(MOST)))
    def park_and_unpark(self, kind: str) -> None:
        """Nobody alive knows the types for a while."""
        self.connection.execute("UPDATE jobs_process SET types = '{}'")
        park(self.connection, kind)
        self.connection.execute("UPDATE jobs_process SET types = %s", [registry.names()])
        self.sweep()
        unpark(self.connection, [kind])
        self.sweep()

    @rule(name=st.sampled_from("ab"))
    def pause(self, name: str) -> None:
        if not standing().exists():
            hold("group", name)
            self.sweep()

    @rule()
    def resume(self) -> None:
        for each in standing():
            lift(each)
        while Hold.objects.filter(drained_at=None).exists():
            self.sweep()
        self.sweep()

    def sweep(self) -> None:
        """As the dispatchers' loops do every few seconds."""
        for work in (Holder(), Admitter()):
            work.run_once(self.connection, server_time(self.connection))

    @invariant()
    def as_many_have_a_place_as_there_may_be(self) -> None:
        for name, kind, places, waiting in self.connection.execute(LINES).fetchall():
            assert places <= MOST[kind], name
            assert not waiting or places == MOST[kind], name


@pytest.mark.timeout(600)
def test_as_many_of_a_key_have_a_place_as_it_allows_whatever_happens() -> None:
    run_state_machine_as_test(
        Keys,
        settings=settings(
            max_examples=25,
            stateful_step_count=30,
            derandomize=True,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert_sound()
