"""Every verb once, on a hundred jobs or so, so that each statement is sent with the values it really gets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg

from dispatch.dispatcher import Dispatcher
from dispatch.holdings import Holdings
from dispatch.slots import Slots
from dispatch.ticker import Ticker
from dispatch.watch import Watch
from jobs import moving, verbs
from jobs.clock import DatabaseClock
from jobs.leases import (
    Autopsy,
    Claimer,
    Looks,
    Targets,
    admit,
    end,
    fetch,
    park,
    park_held,
    relay,
    rescue,
    rescue_process,
    settle,
    unpark,
    unpark_held,
)
from jobs.models import CronDefinition, CronRun, CronTick, Queue, Tenant
from jobs.registry import registry
from jobs.results import Claim, Completed, Released, Result, Settlement, Snoozed
from jobs.sql import for_day, load
from tests.factories import ERROR, failed, process, schedule
from tests.schema.explain import Recorder

NUMBER = 100


def everything(recorder: Recorder) -> None:
    _schedule(recorder)
    _dispatch(recorder)
    taken = _claim(recorder)
    _watch(recorder, taken)
    _settle(recorder, taken)
    _rescue(recorder)
    _park(recorder)
    _operate(recorder)
    _keys(recorder)
    _hold(recorder)
    _tick(recorder)


def _schedule(recorder: Recorder) -> None:
    schedule()  # what is asked once a process is asked here
    with recorder.django():
        schedule(delay=timedelta(hours=1))
        schedule(unique_key="k", unique_for=timedelta(hours=1))
        schedule(unique_key="k")


def _dispatch(recorder: Recorder) -> None:
    connection: Any = recorder
    now = DatabaseClock().read(recorder.connection)
    work = Dispatcher()
    work.batch = NUMBER
    for _ in range(3):  # late in the day little is left of today: then tomorrow's leaf is read as well
        work.run_once(connection, now + timedelta(hours=12))
    due = now + timedelta(hours=13)
    recorder.execute(for_day("timer_with_entry", due.date()), {"until": due, "aside": []}).fetchone()


def _claim(recorder: Recorder) -> list[Claim]:
    """Of a queue without limits; then of one with a limit, of whose tenants some are limited and full."""
    connection: Any = recorder
    mine = process(recorder.connection)
    free = Claimer("q0", mine, registry.names())
    taken = free.claim(connection, NUMBER, NUMBER)
    assert len(taken) == NUMBER
    assert len(free.claim(connection, NUMBER, NUMBER)) == NUMBER  # from its marks
    free._stride(connection, list(free.ring.marks)[:10])
    fetch(connection, [each._replace(payload=None) for each in taken])
    Tenant.objects.filter(slug__in=["t01", "t03", "t05"]).update(max_running=10)
    Queue.objects.create(name="q1", max_running=NUMBER)
    limited = Claimer("q1", mine, registry.names())
    assert NUMBER / 2 < sum(len(limited.claim(connection, NUMBER, NUMBER)) for _ in range(4)) <= NUMBER
    assert limited.ring.limited
    limited.passed._asked = float("-inf")
    limited._bring_back(connection)
    _relay(recorder, mine)
    _look(recorder, free.looks)
    return taken


def _relay(recorder: Recorder, mine: int) -> None:
    """Of a tenant under a limit."""
    connection: Any = recorder
    Tenant.objects.filter(slug="t02").update(max_running=NUMBER)
    claimer = Claimer("q0", mine, registry.names())
    held = [each for _ in range(3) for each in claimer.claim(recorder.connection, NUMBER, NUMBER)]
    ended = [Settlement(each.held, Completed(), None) for each in held if each.tenant == "t02"]
    relayed = relay(connection, claimer, next(iter(claimer.counts.of)), ended)
    assert relayed
    assert len(relayed.claims) == len(ended) > NUMBER / 20
    settle(
        recorder.connection, [Settlement(each.held, Completed(), None) for each in [*held, *relayed.claims]]
    )


def _look(recorder: Recorder, looks: Looks) -> None:
    """Once over what became due within a minute or so, once for what was left behind the marks."""
    connection: Any = recorder
    assert looks._since
    looks._since -= timedelta(minutes=2)
    looks._narrow_or_wide(connection, wide=True)
    looks._started = True
    looks._sweep(connection)


def _watch(recorder: Recorder, taken: list[Claim]) -> None:
    connection: Any = recorder
    slots = Slots.create(1, 30.0)
    holdings = Holdings(slots)
    for each in taken:
        holdings.add(each)
    Watch(taken[0].held.process_id, holdings, lambda settlement: None).reconcile(connection)
    recorder.execute(load("suspects"), {"queues": ["q0", "q1"]}).fetchone()
    slots.close()


def _settle(recorder: Recorder, taken: list[Claim]) -> None:
    connection: Any = recorder
    results: list[Result] = [
        Completed(),
        failed(),
        failed(final=True),
        Snoozed(timedelta(hours=1)),
        Released(),
    ]
    half = len(taken) // 2
    batch = [Settlement(each.held, results[n % 5], None) for n, each in enumerate(taken[:half])]
    settle(connection, batch)
    settle(connection, [Settlement(each.held, Completed(), None) for each in taken[half:]])
    settle(connection, batch)  # again, after a lost reply


def _rescue(recorder: Recorder) -> None:
    connection: Any = recorder
    one, two = process(recorder.connection), process(recorder.connection)
    for each in (one, two):
        assert Claimer("q0", each, registry.names()).claim(recorder.connection, NUMBER, NUMBER)
    rescue_process(connection, one, Autopsy(error=ERROR))
    end(recorder.connection, [two])
    assert rescue(connection).fates


def _park(recorder: Recorder) -> None:
    connection: Any = recorder
    recorder.connection.execute(
        "UPDATE jobs_queueentry SET job_type = 'nobody.knows' WHERE ctid = ANY(ARRAY("
        "SELECT ctid FROM jobs_queueentry WHERE queue = 'q0' AND lease_token IS NULL LIMIT 500))"
    )
    assert park(connection, "q0").total() >= NUMBER
    assert unpark(connection, ["nobody.knows"]) >= NUMBER


def _keys(recorder: Recorder) -> None:
    """A hundred keys of ten entries each, all due."""
    connection: Any = recorder
    recorder.connection.execute(
        "UPDATE jobs_queueentry SET parked = 'key', concurrency_key = 'k' || hashtext(job_id::text) %% %s WHERE ctid = "
        "ANY(ARRAY(SELECT ctid FROM jobs_queueentry WHERE lease_token IS NULL AND parked IS NULL LIMIT %s))",
        [NUMBER, 10 * NUMBER],
    )
    now = DatabaseClock().read(recorder.connection)
    rows = recorder.execute(load("keys_waiting"), {"now": now}).fetchall()
    assert len(rows) >= NUMBER
    assert admit(connection, rows[:NUMBER]) > NUMBER / 2
    values = {"since": now - timedelta(minutes=2), "now": now}
    recorder.execute(load("keys_due"), values).fetchall()


def _hold(recorder: Recorder) -> None:
    connection: Any = recorder
    now = DatabaseClock().read(recorder.connection)
    targets = Targets(types=["test.flaky"])
    held, _ = park_held(connection, targets, now - timedelta(days=1), now)
    assert held > NUMBER
    assert unpark_held(connection, targets, Targets(), NUMBER)[0] == NUMBER


def _operate(recorder: Recorder) -> None:
    later = DatabaseClock().read(recorder.connection) + timedelta(hours=2)
    with recorder.django():
        for table, where in (("timer", "true"), ("queueentry", "lease_token IS NULL")):
            moving.prioritize(_ids(recorder.connection, table, where), 7)
            verbs.cancel(_ids(recorder.connection, table, where))
            verbs.reschedule(_ids(recorder.connection, table, where), later)
        ended = _ids(recorder.connection, "outcome", "state = 'failed'")
        assert verbs.retry([*ended, uuid4()]).changed == len(ended)


def _ids(connection: psycopg.Connection[Any], table: str, where: str) -> list[UUID]:
    """A hundred jobs of the day that has most."""
    rows = connection.execute(
        f"WITH found AS (SELECT job_id, (due_at AT TIME ZONE 'UTC')::date AS day FROM jobs_{table} WHERE {where}), "
        "most AS (SELECT day FROM found GROUP BY day ORDER BY count(*) DESC LIMIT 1) "
        f"SELECT job_id FROM found JOIN most USING (day) LIMIT {NUMBER}"
    )
    return [job_id for (job_id,) in rows.fetchall()]


def _tick(recorder: Recorder) -> None:
    connection: Any = recorder
    recorder.generic = False  # a dispatcher's session is an ordinary one
    now = DatabaseClock().read(recorder.connection)
    work = Ticker()
    work.run_once(connection, now)
    ticks = list(CronTick.objects.filter(slot__gt=now - timedelta(hours=1))[:NUMBER])
    CronTick.objects.filter(pk__in=[tick.pk for tick in ticks]).update(outcome="waiting", job_id=None)
    told = {
        "ids": [tick.pk for tick in ticks], "slots": sorted({tick.slot for tick in ticks}),
        "outcomes": ["late"] * len(ticks), "reasons": [""] * len(ticks), "jobs": [None] * len(ticks),
    }  # fmt: skip
    recorder.execute(load("retell_ticks"), told)
    definition = CronDefinition.objects.order_by("pk")[0]
    CronDefinition.objects.filter(pk=definition.pk).update(overlap="buffer_all")
    CronRun.objects.bulk_create(
        CronRun(tick_id=uuid4(), definition_id=definition.pk, revision=1, slot=now, job_id=job_id)
        for job_id in _ids(recorder.connection, "queueentry", "true")
    )
    work.run_once(connection, now)
