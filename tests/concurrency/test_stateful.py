"""Every verb in random order against a model of the life cycle: after each step both say the same of every job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta
from typing import Any, ClassVar, LiteralString
from uuid import UUID

import pytest
from django.db import connections
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dispatch.dispatcher import Dispatcher
from jobs import clock, db, partitions, tenants, verbs
from jobs.ids import due_of
from jobs.leases import Claimer, ProcessExpired, end, renew, rescue, settle
from jobs.models import Job
from jobs.partitions import bounds, day_of, ensure, expire
from jobs.registry import registry
from jobs.results import Cancelled, Completed, Failed, Held, Released, Settlement, Snoozed
from jobs.states import RETRYABLE, JobState
from tests.emptying import empty_tables
from tests.factories import ERROR, process
from tests.life_cycle import ModelJob
from tests.racing import Connection, assert_sound
from tests.searching import examples

pytestmark = pytest.mark.concurrency

OLD, RETENTION, HOUR = timedelta(days=50), timedelta(days=60), timedelta(hours=1)
pick = st.integers(0, 99)
due = st.booleans()

ROWS: LiteralString = """
    SELECT job_id, 'timer', 0, max_attempts, 0, false FROM jobs_timer WHERE due_at = ANY(%(dues)s)
    UNION ALL
    SELECT job_id, 'entry', attempt, max_attempts, crashes, cancel_requested FROM jobs_queueentry
    UNION ALL
    SELECT job_id, 'outcome', attempt, max_attempts, crashes, false FROM jobs_outcome WHERE due_at = ANY(%(dues)s)
"""
LOOK = 10
"""Steps between two looks at the derived states, which cost as much as the step itself."""


class LifeCycle(RuleBasedStateMachine):
    old: ClassVar[date]
    dispatcher: ClassVar[Dispatcher]

    def __init__(self) -> None:
        super().__init__()
        connections["default"].ensure_connection()
        raw: Any = db.ServerBound(connections["default"].connection)
        self.connection: Connection = raw
        self.jobs: dict[UUID, ModelJob] = {}
        self.held: dict[tuple[UUID, UUID | None], Held] = {}
        self.claimers: dict[tuple[int, bool], Claimer] = {}
        """What a worker remembers from claim to claim."""
        self.alive = [process(self.connection), process(self.connection)]
        self.expired: set[int] = set()
        self.pruned = False
        self.steps = 0

    def teardown(self) -> None:
        try:
            self.derived_states_are_those_of_the_model()
        finally:
            empty_tables()
            tenants.forget()

    def one(self, n: int, *states: JobState) -> ModelJob:
        found = [job for job in self.jobs.values() if job.state in states]
        return found[n % len(found)]

    def holder(self, key: str | None) -> ModelJob | None:
        live = (job for job in self.jobs.values() if key and job.key == key and not job.ended)
        return next(live, None)

    # schedule, dispatch, claim

    @initialize()
    def begin(self) -> None:
        """Something of each kind from the start, two of them running."""
        for when in ("now", "now", "now", "later", "old"):
            self.schedule(when=when, attempts=2, key=None)
        self.claim(n=0, size=2, suspects=False)

    @rule(
        when=st.sampled_from(["now", "later", "old"]),
        attempts=st.integers(1, 3),
        key=st.sampled_from([None, None, "a", "b"]),
    )
    def schedule(self, when: str, attempts: int, key: str | None) -> None:
        dues = {
            "now": clock.now() - HOUR,
            "later": clock.now() + 20 * HOUR,
            "old": bounds(self.old)[0] + HOUR,
        }
        job = Job.objects.schedule("test.noop", due_at=dues[when], max_attempts=attempts, unique_key=key)
        holder = self.holder(key)
        assert job.was_created == (holder is None)
        if holder:
            assert job.id == holder.job_id
        else:
            self.jobs[job.id] = ModelJob(job.id, attempts, old=when == "old", early=when == "later", key=key)
            self.jobs[job.id].place = "timer" if when == "later" else "entry"

    @precondition(lambda self: any(job.place == "timer" for job in self.jobs.values()))
    @rule(most=st.integers(1, 3))
    def dispatch(self, most: int) -> None:
        timers = sorted(job_id for job_id, job in self.jobs.items() if job.place == "timer")[:most]
        self.dispatcher.batch = most
        self.dispatcher.interrupted()  # it looks into all days: far from now they are not the ones it watches closely
        assert self.dispatcher.run_once(self.connection, clock.now() + 2 * timedelta(days=1)) == len(timers)
        for job_id in timers:
            self.jobs[job_id].dispatch()

    @precondition(lambda self: any(job.claimable for job in self.jobs.values()))
    @rule(n=pick, size=st.integers(1, 4), suspects=st.booleans(), fresh=st.booleans())
    def claim(self, n: int, size: int, suspects: bool, fresh: bool = True) -> None:
        mine = self.alive[n % len(self.alive)]
        if fresh or (mine, suspects) not in self.claimers:
            self.claimers[mine, suspects] = Claimer("test.noop", mine, registry.names(), suspects=suspects)
        claimer = self.claimers[mine, suspects]
        ready = {job_id for job_id, job in self.jobs.items() if job.claimable and job.suspect == suspects}
        if mine in self.expired:
            with pytest.raises(ProcessExpired) if ready else suppress(ProcessExpired):
                assert claimer.claim(self.connection, size, size) == []
            return
        taken: list[Held] = []
        while some := claimer.claim(self.connection, (most := size - len(taken)), most):
            taken += [each.held for each in some]
            if len(taken) == size:
                break
        assert {held.job_id for held in taken} <= ready
        assert len(taken) == min(size, len(ready))
        for held in taken:
            self.jobs[held.job_id].claim(mine, held.lease_token)
            self.held[held.job_id, held.lease_token] = held

    @precondition(lambda self: any(job.place == "entry" for job in self.jobs.values()))
    @rule(n=pick)
    def time_passes(self, n: int) -> None:
        """The run time of a waiting job comes."""
        job = self.one(n, JobState.SCHEDULED, JobState.QUEUED, JobState.RETRYABLE, JobState.RUNNING)
        self.connection.execute(
            "UPDATE jobs_queueentry SET run_at = least(run_at, clock_timestamp()) WHERE job_id = %s",
            [job.job_id],
        )
        job.due |= job.place == "entry"

    # exits from running

    def settle(self, job: ModelJob, result: Any) -> None:
        assert job.lease
        settled = settle(self.connection, [Settlement(self.held[job.job_id, job.lease], result, None)])
        assert set(settled.fates) == {job.job_id}

    is_running = precondition(lambda self: any(job.lease for job in self.jobs.values()))

    @is_running
    @rule(n=pick)
    def complete(self, n: int) -> None:
        self.settle(job := self.one(n, JobState.RUNNING), Completed())
        job.complete()

    @is_running
    @rule(n=pick, due=due, final=st.booleans(), crashed=st.booleans())
    def fail(self, n: int, due: bool, final: bool, crashed: bool) -> None:
        job = self.one(n, JobState.RUNNING)
        self.settle(job, Failed(ERROR, timedelta() if due else HOUR, final=final, crashed=crashed))
        job.fail(due=due, final=final, crashed=crashed)

    @is_running
    @rule(n=pick, due=due)
    def snooze(self, n: int, due: bool) -> None:
        self.settle(job := self.one(n, JobState.RUNNING), Snoozed(timedelta() if due else HOUR))
        job.snooze(due=due)

    @is_running
    @rule(n=pick, crashed=st.booleans())
    def release(self, n: int, crashed: bool) -> None:
        self.settle(job := self.one(n, JobState.RUNNING), Released(crashed=crashed))
        job.release(crashed=crashed)

    @is_running
    @rule(n=pick)
    def flag_and_stop(self, n: int) -> None:
        job = self.one(n, JobState.RUNNING)
        assert verbs.cancel([job.job_id]).requested == 1
        self.settle(job, Cancelled())
        job.end(JobState.CANCELLED)

    @precondition(lambda self: any(job.stale for job in self.jobs.values()))
    @rule(n=pick)
    def settle_late(self, n: int) -> None:
        stale = [(job_id, lease) for job_id, job in self.jobs.items() for lease in job.stale]
        late = Settlement(self.held[stale[n % len(stale)]], Completed(), None)
        assert settle(self.connection, [late]).fates == {}

    # leases

    @is_running
    @rule(n=pick)
    def lease_ends(self, n: int) -> None:
        end(self.connection, [self.alive[n % 2]])
        self.expired.add(self.alive[n % 2])

    @precondition(lambda self: self.expired)
    @rule()
    def rescue(self) -> None:
        lost = {job_id for job_id, job in self.jobs.items() if job.process in self.expired}
        assert set(rescue(self.connection).fates) == lost
        for job_id in lost:
            self.jobs[job_id].rescue()

    @precondition(lambda self: self.expired)
    @rule(n=pick)
    def renew(self, n: int) -> None:
        mine = self.alive[n % 2]
        if renew(self.connection, [mine]) != {mine}:
            assert mine in self.expired
            self.alive[n % 2] = process(self.connection)

    # operators

    @precondition(lambda self: self.jobs)
    @rule(n=pick)
    def cancel(self, n: int) -> None:
        job = self.one(n, *JobState)
        report = verbs.cancel([job.job_id])
        assert (report.changed, report.requested) == (not job.lease and not job.ended, bool(job.lease))
        job.cancel()

    @precondition(lambda self: self.jobs)
    @rule(n=pick)
    def retry(self, n: int) -> None:
        job = self.one(n, *(RETRYABLE if any(j.state in RETRYABLE for j in self.jobs.values()) else JobState))
        may = job.state in RETRYABLE and not self.holder(job.key)
        assert verbs.retry([job.job_id]).changed == may
        if may:
            job.retry()

    @precondition(lambda self: self.jobs)
    @rule(n=pick, due=due)
    def reschedule(self, n: int, due: bool) -> None:
        job = self.one(n, *JobState)
        may = not job.lease and not job.ended
        run_at = clock.now() + (-HOUR if due else HOUR)
        assert verbs.reschedule([job.job_id], run_at).changed == may
        if may:
            job.reschedule(due=due)

    @precondition(lambda self: not self.pruned and any(job.old for job in self.jobs.values()))
    @rule()
    def prune(self) -> None:
        self.pruned = True
        ended = all(job.ended for job in self.jobs.values() if job.old)
        report = expire(bounds(self.old)[1] + RETENTION)
        assert report.dropped == ([self.old] if ended else [])
        assert list(report.kept) == ([] if ended else [self.old])
        if ended:
            self.jobs = {job_id: job for job_id, job in self.jobs.items() if not job.old}
            ensure([self.old])
            partitions.known.clear()

    # what must hold

    @invariant()
    def every_job_is_in_one_place_and_its_row_says_what_the_model_says(self) -> None:
        dues = sorted({due_of(job_id) for job_id in self.jobs})
        rows = self.connection.execute(ROWS, {"dues": dues}).fetchall()
        assert sorted(rows) == sorted(  # a job in two places would be there twice
            (j.job_id, j.place, j.attempt, j.max_attempts, j.crashes, j.flagged and not j.ended)
            for j in self.jobs.values()
        )
        self.steps += 1
        if self.steps % LOOK == 0:
            self.derived_states_are_those_of_the_model()

    def derived_states_are_those_of_the_model(self) -> None:
        start, end = bounds(self.old)[0], clock.now() + timedelta(days=2)
        found = dict(Job.objects.with_state(start, end).values_list("id", "state"))
        assert found == {job_id: job.state for job_id, job in self.jobs.items()}


@pytest.fixture
def machine(connection: Any, settings: Any) -> Iterator[type[LifeCycle]]:
    settings.SCHEDULER = {"retention": RETENTION}
    LifeCycle.old = day_of(clock.now() - OLD)
    LifeCycle.dispatcher = Dispatcher()
    ensure([LifeCycle.old])
    yield LifeCycle
    connections["default"].close()
    for parent in partitions.PARENTS:
        connection.execute(f'DROP TABLE IF EXISTS "{parent}__{LifeCycle.old:%Y_%m_%d}"')


@pytest.mark.timeout(600)
def test_every_verb_in_any_order_does_what_the_model_says(machine: type[LifeCycle]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples(200),
            stateful_step_count=50,
            derandomize=True,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert_sound()
