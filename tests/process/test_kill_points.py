"""A session dies at every statement boundary of every verb: the invariant holds, and each job can still end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connections

from dispatch.admitter import Admitter
from dispatch.dispatcher import Dispatcher
from dispatch.ticker import Ticker
from jobs import clock, verbs
from jobs.leases import Claimer, admit, end, rescue, settle
from jobs.models import CronDefinition, CronTick, Job, Outcome, Process, Queue, QueueEntry, Tenant
from jobs.newjob import NewJob
from jobs.registry import registry
from jobs.results import Cancelled, Completed, Failed, Released, Result, Settlement, Snoozed
from jobs.states import JobState
from tests.factories import ERROR, claim, job_in, own_connection, process, schedule
from tests.keyed import admitted, keyed
from tests.killing import kill_point
from tests.racing import Connection, assert_sound, due_job

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("transactional_db")]
DAY = timedelta(days=1)

Act = Callable[[Connection], Any]


@dataclass(frozen=True)
class Verb:
    """`prepare` makes what the verb needs and returns it as a call on the session that will die."""

    prepare: Callable[[Connection], Act]
    boundaries: tuple[str, ...]
    """Some of the points that must have been visited, by what they are called."""
    django: bool = False
    """It works on Django's session."""


numbers = count()


def schedules(*boundaries: str, keyed: bool = False, gated: bool = False, **options: Any) -> Verb:
    def prepare(connection: Connection) -> Act:
        more = {"unique_key": f"k{next(numbers)}"} if keyed else {}
        if gated:
            more["concurrency_key"] = f"k{next(numbers)}"
        return lambda own: schedule(**options, **more)

    return Verb(prepare, boundaries, django=True)


def schedule_many(connection: Connection) -> Act:
    keys = [f"k{next(numbers)}" for _ in range(3)]
    new = [NewJob(job_type="test.noop", delay=n * DAY, unique_key=key) for n, key in enumerate(keys)]
    return lambda own: Job.objects.schedule_many(new)


def dispatch(connection: Connection) -> Act:
    schedule(delay=DAY)
    return lambda own: Dispatcher().run_once(own, clock.now() + 2 * DAY)


def claims(*boundaries: str, limited: bool) -> Verb:
    def prepare(connection: Connection) -> Act:
        end_all()  # what an earlier point has claimed takes up the limit
        due_job()
        if limited:
            Tenant.objects.update(max_running=1)
            Queue.objects.get_or_create(name="test.noop", max_running=1)
        claimer = Claimer("test.noop", process(connection), registry.names())
        return lambda own: claimer.claim(own, 5, 5)

    return Verb(prepare, boundaries)


def settles(result: Result, *boundaries: str, one_statement: bool = False) -> Verb:
    def prepare(connection: Connection) -> Act:
        held = claim(connection, due_job(unique_key=f"k{next(numbers)}"), process(connection))
        return lambda own: settle(own, [Settlement(held.held, result, None)])

    return Verb(prepare, boundaries if one_statement else ("enter", *boundaries, "exit"))


def settles_and_admits(connection: Connection) -> Act:
    """The next of its key is left behind for a dispatcher when we die in between."""
    name = f"k{next(numbers)}"
    first, second = keyed(name), keyed(name)
    assert admitted(first, second) == [True, False]
    held = claim(connection, first, process(connection))
    return lambda own: admit(own, settle(own, [Settlement(held.held, Completed(), None)]).keys)


def rescues(connection: Connection) -> Act:
    mine = process(connection)
    claim(connection, due_job(), mine)
    end(connection, [mine])
    return rescue


def on_job(verb: Callable[..., Any], state: JobState, *boundaries: str, keyed: bool = False) -> Verb:
    def prepare(connection: Connection) -> Act:
        job = job_in(state, connection, unique_key=f"k{next(numbers)}" if keyed else None)
        return lambda own: verb([job.id])

    return Verb(prepare, (*boundaries, "commit"), django=True)


def reschedule(ids: list[Any]) -> Any:
    return verbs.reschedule(ids, clock.now() + DAY)


def tick(connection: Connection) -> Act:
    now, tenant_id = clock.now(), schedule().tenant_id
    CronDefinition.objects.create(
        name=f"c{next(numbers)}",
        tenant_id=tenant_id,
        expression="* * * * *",
        job_type="test.noop",
        last_slot=now,
    )
    return lambda own: Ticker().run_once(own, now)


LIMITED = ("enter", "limited queues", "limited tenants", "claim: take", "exit")
LEARNING = ("enter", "limited tenants", "claim: take", "exit")
"""By which a claimer learns of its queue's limit."""
TIMERS, ENTRIES = "cancel, place 1", "cancel, place 2"
VERBS = {
    "schedule a timer": schedules("a job that is due later", delay=DAY),
    "schedule an entry": schedules("a job that is due within the look-ahead", delay=-DAY),
    "schedule with a key": schedules("take unique keys", "due later", "commit", keyed=True, delay=DAY),
    "schedule many": Verb(schedule_many, ("take unique keys", "copy_to", "copy_end", "commit"), django=True),
    "dispatch": Verb(dispatch, ("SELECT p.relname", "dispatch: timers")),
    "claim": claims("a fresh start", "look: of each", "claim: take", limited=False),
    "claim within limits": claims("a fresh start", "look: of each", *LEARNING, *LIMITED, limited=True),
    "settle completed": settles(Completed(), "completed and without results", one_statement=True),
    "settle completed with a result": settles(Completed("1"), "into a final state", one_statement=True),
    "settle failed": settles(
        Failed(ERROR, timedelta(), final=True),
        "lock what is still ours",
        "into a final state",
        "one row for each",
    ),
    "settle a failed attempt": settles(
        Failed(ERROR, timedelta()), "lock what is still ours", "back to waiting", "one row for each attempt"
    ),
    "settle snoozed": settles(Snoozed(timedelta()), "lock what is still ours", "back to waiting"),
    "settle cancelled": settles(Cancelled(), "lock what is still ours", "into a final state"),
    "schedule with a concurrency key": schedules(
        "within the look-ahead", "enter", "admit, step 1", "exit", gated=True
    ),
    "settle and admit": Verb(settles_and_admits, ("completed and without", "enter", "admit, step 1", "exit")),
    "release": settles(Released(), "lock what is still ours", "back to waiting"),
    "rescue": Verb(rescues, ("enter", "rescue: entries", "lock what is still", "back to waiting", "exit")),
    "cancel a scheduled job": on_job(
        verbs.cancel, JobState.SCHEDULED, TIMERS, "DELETE FROM jobs_uniquekey", keyed=True
    ),
    "cancel a queued job": on_job(
        verbs.cancel, JobState.QUEUED, TIMERS, ENTRIES, "DELETE FROM jobs_uniquekey", keyed=True
    ),
    "cancel a running job": on_job(verbs.cancel, JobState.RUNNING, TIMERS, ENTRIES),
    "retry": on_job(verbs.retry, JobState.FAILED, "retry: ended jobs"),
    "retry with a key": on_job(
        verbs.retry, JobState.FAILED, "take unique keys", "retry: ended jobs", keyed=True
    ),
    "reschedule a timer": on_job(reschedule, JobState.SCHEDULED, "reschedule, place 1"),
    "reschedule an entry": on_job(reschedule, JobState.QUEUED, "reschedule, place 1", "reschedule, place 2"),
    "tick": Verb(
        tick, ("enter", "tick: definitions", "tick: the ledger", "copy_to", "copy_end", "tick: move", "exit")
    ),
}


def strike(verb: Verb, number: int) -> str | None:
    """Run the verb and kill its session after this round trip; the point's name, None when it has fewer."""
    with own_connection() as connection:
        schedule()  # what a process asks once is known: the points of all strikes are the same
        act = verb.prepare(connection)
    own = own_connection()
    try:
        connections["default"].ensure_connection()
        victim: Connection = connections["default"].connection if verb.django else own
        with kill_point(victim, number) as point:
            try:
                act(own)
            except (psycopg.OperationalError, DatabaseError):
                assert point.reached
    finally:
        own.close()
        connections["default"].close()
    return point.name if point.reached else None


def end_all() -> None:
    """Every process is gone; what is there is dispatched, brought back and run to its end."""
    with own_connection() as connection:
        Ticker().run_once(connection, clock.now())
        while Dispatcher().run_once(connection, clock.now() + 4 * DAY):
            pass
        end(connection, list(Process.objects.values_list("pk", flat=True)))
        rescue(connection)
        QueueEntry.objects.update(run_at=clock.now() - DAY)
        Admitter().run_once(connection, clock.now())
        for suspects in (False, True):
            claimer = Claimer("test.noop", process(connection), registry.names(), suspects=suspects)
            while taken := claimer.claim(connection, 10, 10):
                settled = settle(connection, [Settlement(each.held, Completed(), None) for each in taken])
                admit(connection, settled.keys)
                for each in taken:
                    claimer.settled(each.tenant_id)


@pytest.mark.parametrize("name", VERBS)
def test_st_03_a_session_that_dies_at_any_boundary_leaves_every_job_in_one_place_and_able_to_end(
    name: str,
) -> None:
    verb, visited = VERBS[name], list[str]()
    while point := strike(verb, len(visited)):
        visited.append(point)
    assert_sound()
    end_all()
    assert not QueueEntry.objects.exists(), visited
    jobs = Job.objects.due_between(clock.now() - 2 * DAY, clock.now() + 4 * DAY)
    outcomes = Outcome.objects.filter(due_at__gt=clock.now() - 2 * DAY)
    assert jobs.count() == outcomes.count(), visited
    ticks = CronTick.objects.filter(slot__gt=clock.now() - DAY, outcome="fired")
    assert ticks.values("definition_id", "slot").distinct().count() == ticks.count()
    assert_sound()
    points = iter(visited)
    assert all(any(boundary in point for point in points) for boundary in verb.boundaries), visited
