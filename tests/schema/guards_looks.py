"""What each guard of hop, look, sweep and free prevents: a small check that fails without it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg

from jobs.clock import DatabaseClock
from jobs.leases import Claimer, Looks
from jobs.leases.counts import Count
from jobs.leases.ring import NIL, Pair
from jobs.models import QueueEntry, Tenant
from jobs.registry import registry
from jobs.sql import load
from tests.factories import come_due, process, schedule, server_time
from tests.schema.guards_claim import running, two_due

Connection = psycopg.Connection[Any]
SOON, HOUR = timedelta(seconds=4), timedelta(hours=1)


def _looks() -> Looks:
    return Looks(["q"], ["test.noop"], clock=DatabaseClock())


def _due(here: Connection, **change: Any) -> Pair:
    """A due entry; returns its pair."""
    job = schedule(queue="q")
    come_due(here)
    QueueEntry.objects.filter(job_id=job.id).update(**change)
    return job.tenant_id, 0


def _hopped(here: Connection) -> set[Pair]:
    """What is told by a hop alone."""
    looks = _looks()
    looks._see_all(here)
    return set(looks.lines["q"].ring.marks)


def _looked(here: Connection) -> Looks:
    """After one narrow look."""
    looks = _looks()
    looks._now = looks._since = server_time(here)
    looks._narrow_or_wide(here, wide=False)
    return looks


def _told(looks: Looks) -> tuple[set[Pair], datetime | None]:
    line = looks.lines["q"]
    return set(line.ring.marks), line.next_at


OUT_OF_THE_WAY: tuple[dict[str, Any], ...] = (
    {"lease_token": uuid4(), "process_id": 1}, {"parked": "type"}, {"queue": "other"},
)  # fmt: skip


def _nobody_hops_to(here: Connection, **change: Any) -> None:
    pair = _due(here)
    assert _hopped(here) == {pair}
    QueueEntry.objects.update(**change)
    assert _hopped(here) == set()


def what_runs_is_not_hopped_to(here: Connection) -> None:
    _nobody_hops_to(here, **OUT_OF_THE_WAY[0])


def what_is_parked_is_not_hopped_to(here: Connection) -> None:
    _nobody_hops_to(here, **OUT_OF_THE_WAY[1])


def another_queue_is_not_hopped_to(here: Connection) -> None:
    _nobody_hops_to(here, **OUT_OF_THE_WAY[2])


def _nobody_wakes_for(here: Connection, **change: Any) -> None:
    """Neither when it is due nor before."""
    pair = _due(here)
    assert _told(_looked(here)) == ({pair}, None)
    job = schedule(queue="q", delay=SOON)
    assert _told(_looked(here)) == ({pair}, job.due_at)
    QueueEntry.objects.update(**change)
    assert _told(_looked(here)) == (set(), None)


def what_runs_wakes_nobody(here: Connection) -> None:
    _nobody_wakes_for(here, **OUT_OF_THE_WAY[0])


def what_is_parked_wakes_nobody(here: Connection) -> None:
    _nobody_wakes_for(here, **OUT_OF_THE_WAY[1])


def another_queue_wakes_nobody(here: Connection) -> None:
    _nobody_wakes_for(here, **OUT_OF_THE_WAY[2])


def what_was_looked_at_is_not_read_again(here: Connection) -> None:
    _due(here, run_at=server_time(here) - HOUR)
    assert _told(_looked(here)) == (set(), None)


def suspects_are_not_told_to_others(here: Connection) -> None:
    _due(here, crashes=2)
    assert _told(_looked(here)) == (set(), None)


def what_must_start_at_once_is_not_taken_for_unknown(here: Connection) -> None:
    _due(here, max_attempts=1)
    assert not _looked(here).lines["q"].unknown


def what_must_start_at_once_is_told_for_its_own_time(here: Connection) -> None:
    for change in ({"max_attempts": 1}, {"crashes": 1}):
        QueueEntry.objects.all().delete()
        job = schedule(queue="q", delay=SOON)
        QueueEntry.objects.update(**change)
        looks = _looks()
        looks._now = looks._since = server_time(here)
        looks.lines["q"].ahead = HOUR
        looks._narrow_or_wide(here, wide=False)
        assert looks.lines["q"].next_at == job.due_at


# sweep


def _swept(here: Connection, pair: Pair, floor: datetime | None = None) -> bool:
    """Whether a sweep of this pair takes its mark back: it has been passed up to now."""
    looks, now = _looks(), server_time(here)
    ring = looks.lines["q"].ring
    ring.see(pair, 1, False, floor or now - 2 * HOUR)
    ring.choose(9)
    ring.advance(pair, (now, NIL))
    looks._started = True
    looks._sweep(here)
    return ring.marks[pair] < (now, NIL)


def _is_not_swept(here: Connection, **change: Any) -> None:
    pair = _due(here)
    assert _swept(here, pair)
    QueueEntry.objects.update(**change)
    assert not _swept(here, pair)


def what_runs_is_not_swept(here: Connection) -> None:
    _is_not_swept(here, **OUT_OF_THE_WAY[0])


def what_is_parked_is_not_swept(here: Connection) -> None:
    _is_not_swept(here, **OUT_OF_THE_WAY[1])


def another_queue_is_not_swept(here: Connection) -> None:
    _is_not_swept(here, **OUT_OF_THE_WAY[2])


def another_tenant_is_not_swept(here: Connection) -> None:
    _is_not_swept(here, tenant_id=10**6)


def another_priority_is_not_swept(here: Connection) -> None:
    _is_not_swept(here, priority=5)


def what_lies_before_the_floor_is_not_swept(here: Connection) -> None:
    pair = _due(here, run_at=server_time(here) - HOUR)
    assert _swept(here, pair)
    assert not _swept(here, pair, floor=server_time(here) - HOUR / 2)


# strides


def _strangers(here: Connection) -> bool:
    looks = _looks()
    looks._see_all(here)
    return looks.lines["q"].strangers


def strangers_behind_a_known_head_are_noticed_when_they_may_run(here: Connection) -> None:
    _due(here)
    assert not _strangers(here)
    job = schedule("test.echo", queue="q")
    come_due(here)
    assert _strangers(here)
    for change in (*OUT_OF_THE_WAY, {"run_at": server_time(here) + HOUR}):
        changed = QueueEntry.objects.filter(job_id=job.id)
        changed.update(**change)
        assert not _strangers(here)
        changed.update(
            lease_token=None, process_id=None, parked=None, queue="q", run_at=server_time(here) - HOUR
        )


def _fence(here: Connection, pair: Pair, **options: Any) -> datetime | None:
    values = {
        "queue": "q", "tenants": [pair[0]], "priorities": [pair[1]], "run_ats": [server_time(here) - HOUR],
        "job_ids": [NIL], "stride": 2, **options,
    }  # fmt: skip
    return here.execute(load("fence"), values).fetchall()[0][0]  # type: ignore[no-any-return]


def a_stride_counts_what_a_claim_would_read(here: Connection) -> None:
    run_at = server_time(here) - HOUR / 2
    pair = _due(here, run_at=run_at - timedelta(seconds=1))
    second = QueueEntry.objects.filter(job_id=schedule(queue="q").id)
    second.update(run_at=run_at)
    assert _fence(here, pair) == run_at
    assert _fence(here, pair, stride=3) is None
    assert _fence(here, pair, run_ats=[run_at - timedelta(microseconds=1)]) is None
    for change in (
        *OUT_OF_THE_WAY,
        {"tenant_id": 10**6},
        {"priority": 5},
        {"run_at": server_time(here) + HOUR},
    ):
        second.update(**change)
        assert _fence(here, pair) is None
        second.update(
            tenant_id=pair[0], priority=0, lease_token=None, process_id=None, parked=None, queue="q",
            run_at=run_at,
        )  # fmt: skip


def a_claim_ends_at_its_fence(here: Connection) -> None:
    pair = _due(here)
    mine = Claimer("q", process(here), ["test.noop"])
    mine.ring.see(pair, 1, False, server_time(here) - HOUR)
    mine.looks.clock.read(here)
    mine.line.strangers = True
    mine._stride = lambda connection, pairs: {pair: (server_time(here) - HOUR / 2, NIL)}  # type: ignore[method-assign]
    assert mine._take(here, mine.ring.choose(9), 9, 9) == []


# free


def _is_free(here: Connection, tenant_id: int, oldest: int = 0) -> bool:
    mine = Claimer("test.noop", process(here), registry.names())
    mine.counts.of[tenant_id] = Count(0)
    mine.counts.of[tenant_id].oldest = oldest
    ((_, wait),) = mine._ask(here, [tenant_id])
    return wait is None


def _one_runs(here: Connection, limit: int | None = 1) -> int:
    """Of a tenant's two entries; returns the tenant."""
    first, _ = two_due(here, **running(here))
    Tenant.objects.update(max_running=limit)
    return int(first.tenant_id)


def who_is_full_is_not_free(here: Connection) -> None:
    assert not _is_free(here, _one_runs(here))


def who_has_a_slot_is_free(here: Connection) -> None:
    """Though others run, and his own wait again."""
    tenant = _one_runs(here, limit=2)
    QueueEntry.objects.update(claim_no=1)
    other = schedule(tenant="other")
    QueueEntry.objects.filter(job_id=other.id).update(**running(here))
    assert _is_free(here, tenant)


def who_has_no_limit_is_free(here: Connection) -> None:
    assert _is_free(here, _one_runs(here, limit=None))


def who_is_free_is_counted_from_the_mark(here: Connection) -> None:
    assert _is_free(here, _one_runs(here), oldest=2)


# suspects


def _there_is_a_suspect(here: Connection) -> bool:
    return here.execute(load("suspects"), {"queues": ["q"]}).fetchone() == (True,)


def only_a_suspect_that_may_run_is_one(here: Connection) -> None:
    _due(here, crashes=2)
    assert _there_is_a_suspect(here)
    for change in (*OUT_OF_THE_WAY, {"crashes": 1}, {"run_at": server_time(here) + HOUR}):
        QueueEntry.objects.all().delete()
        _due(here, **{"crashes": 2, **change})
        assert not _there_is_a_suspect(here)
