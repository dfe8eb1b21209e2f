"""What each guard of holds of types and groups prevents: a small check that fails without it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg

from jobs import clock, holds
from jobs.leases import Targets, drain, park_held, unpark_held
from jobs.models import Job, QueueEntry
from jobs.results import Key
from jobs.sql import load
from tests.factories import come_due, process, schedule, take
from tests.keyed import keyed, let_in
from tests.schema.guards_keys import ago

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)
NOOPS = Targets(types=["test.noop"])
GROUP = Targets(groups=["g"])
NONE = Targets()


def due(**options: Any) -> Job:
    return schedule(**{"delay": -timedelta(seconds=1), **options})


def _park(here: Connection, targets: Targets = NOOPS) -> int:
    now = clock.now() + timedelta(seconds=1)
    return park_held(here, targets, now - 2 * HOUR, now)[0]


def _unpark(here: Connection, targets: Targets | None, held: Targets = NONE) -> tuple[int, set[Key]]:
    return unpark_held(here, targets, held)


def what_runs_is_not_parked(here: Connection) -> None:
    due()
    QueueEntry.objects.update(lease_token=uuid4(), process_id=process(here))
    assert _park(here) == 0


def what_is_parked_for_another_reason_stays_so(here: Connection) -> None:
    due()
    QueueEntry.objects.update(parked="type")
    due(job_type="test.echo", queue="test.noop")
    assert _park(here) == 0


def what_is_not_due_is_not_parked(here: Connection) -> None:
    due(delay=timedelta(seconds=4))
    keyed(delay=timedelta(seconds=4))
    assert _park(here) == 0


def what_was_looked_at_is_not_read_again(here: Connection) -> None:
    for job in (due(), keyed()):
        ago(here, job, 3 * HOUR)
    assert _park(here) == 0


def other_types_and_groups_are_not_parked(here: Connection) -> None:
    for make in (due, keyed):
        make(job_type="test.echo", group="other")
        make(job_type="test.echo")
    assert _park(here) == 0
    assert _park(here, GROUP) == 0


def the_queues_of_all_are_looked_into_once(here: Connection) -> None:
    for queue in "abc":
        due(queue=queue)
    assert _park(here) == 3


def who_waits_for_a_key_is_parked(here: Connection) -> None:
    keyed()
    assert _park(here) == 1


def what_is_held_alone_comes_back(here: Connection) -> None:
    job = due()
    assert _unpark(here, NOOPS)[0] == 0
    QueueEntry.objects.update(parked="type")
    assert _unpark(here, NOOPS)[0] == 0
    assert QueueEntry.objects.get(job_id=job.id).parked == "type"


def what_the_hold_did_not_hold_stays(here: Connection) -> None:
    due(job_type="test.echo", group="other")
    due(job_type="test.echo")
    QueueEntry.objects.update(parked="hold")
    assert _unpark(here, NOOPS)[0] == 0
    assert _unpark(here, GROUP)[0] == 0


def what_another_hold_holds_stays(here: Connection) -> None:
    due(group="g")
    QueueEntry.objects.update(parked="hold")
    assert _unpark(here, NOOPS, GROUP)[0] == 0
    assert _unpark(here, None, NOOPS)[0] == 0


def what_has_no_group_comes_back(here: Connection) -> None:
    due()
    QueueEntry.objects.update(parked="hold")
    assert _unpark(here, None, GROUP)[0] == 1


def who_comes_back_with_a_key_waits_for_it(here: Connection) -> None:
    job = keyed()
    QueueEntry.objects.update(parked="hold")
    assert _unpark(here, NOOPS) == (1, {(job.tenant_id, "k")})
    assert QueueEntry.objects.get().parked == "key"


def who_comes_back_runs_from_now_on(here: Connection) -> None:
    job = due()
    ago(here, job, HOUR)
    QueueEntry.objects.update(parked="hold")
    _unpark(here, NOOPS)
    assert QueueEntry.objects.get().run_at > job.created_at


def the_urgent_come_back_first(here: Connection) -> None:
    due()
    urgent = due(priority=1)
    QueueEntry.objects.update(parked="hold")
    unpark_held(here, NOOPS, NONE, 1)
    assert QueueEntry.objects.get(parked=None).job_id == urgent.id


def who_waits_longest_comes_back_first(here: Connection) -> None:
    due()
    early = due()
    ago(here, early, HOUR)
    QueueEntry.objects.update(parked="hold")
    unpark_held(here, NOOPS, NONE, 1)
    assert QueueEntry.objects.get(parked=None).job_id == early.id


def _drain(here: Connection, hold_id: int, seconds: float) -> int:
    here.execute(
        "UPDATE jobs_ratebucket SET refilled_at = clock_timestamp() - make_interval(secs => %s)", [seconds]
    )
    return drain(here, hold_id, 1, NOOPS, NONE)[0]


def a_rate_is_kept(here: Connection) -> None:
    for _ in range(4):
        due()
    QueueEntry.objects.update(parked="hold")
    made = holds.lift(holds.hold("type", "test.noop"), rate=1)
    assert [_drain(here, made.pk, seconds) for seconds in (0, 0.6, 0.6, 3600)] == [0, 0, 1, 1]
    assert drain(here, made.pk, 1, NOOPS, NONE)[0] == 0


def a_key_of_a_held_place_makes_room(here: Connection) -> None:
    job = keyed()
    let_in(here, job)
    now = clock.now() + timedelta(seconds=1)
    assert park_held(here, NOOPS, now - HOUR, now) == (1, {(job.tenant_id, "k")})


def _claimed(here: Connection, **options: Any) -> int:
    """How many of two jobs are claimed while what `options` say is held."""
    due(queue="q", **options)
    due(queue="q", group="other")
    come_due(here)
    return len(take(here, "q", process(here)))


def _hold(here: Connection, scope: str, key: str) -> None:
    holds.hold(scope, key)
    here.execute("UPDATE jobs_hold SET since = since - interval '1 h'")


def a_held_type_is_not_claimed(here: Connection) -> None:
    _hold(here, "type", "test.echo")
    assert _claimed(here, job_type="test.echo") == 1


def a_held_group_is_not_claimed(here: Connection) -> None:
    _hold(here, "group", "g")
    assert _claimed(here, group="g") == 1


def what_has_no_group_is_claimed(here: Connection) -> None:
    _hold(here, "group", "g")
    assert _claimed(here) == 2


def a_hold_that_has_ended_holds_nothing(here: Connection) -> None:
    _hold(here, "type", "test.echo")
    here.execute("UPDATE jobs_hold SET until = since + interval '1 min'")
    assert _claimed(here, job_type="test.echo") == 2


def a_hold_that_is_over_holds_nothing(here: Connection) -> None:
    _hold(here, "type", "test.echo")
    here.execute("UPDATE jobs_hold SET drained_at = now()")
    assert _claimed(here, job_type="test.echo") == 2


def a_hold_that_has_not_begun_holds_nothing(here: Connection) -> None:
    _hold(here, "type", "test.echo")
    here.execute("UPDATE jobs_hold SET since = now() + interval '1 min'")
    assert _claimed(here, job_type="test.echo") == 2


def the_name_of_another_kind_holds_nothing(here: Connection) -> None:
    _hold(here, "queue", "test.echo")
    _hold(here, "queue", "other")
    _hold(here, "group", "test.echo")
    _hold(here, "type", "other")
    assert _claimed(here, job_type="test.echo") == 2


def _backlog(here: Connection, scope: str, key: str = "") -> bool:
    values = {"scope": scope, "key": key, "until": clock.now() + timedelta(seconds=1)}
    row = here.execute(load("backlog"), values).fetchone()
    assert row
    return bool(row[0])


def what_came_after_is_no_backlog(here: Connection) -> None:
    due(queue="q", tenant="acme", delay=timedelta(seconds=4))
    assert not _backlog(here, "queue", "q")
    assert not _backlog(here, "tenant", "acme")


def the_backlog_of_another_is_none(here: Connection) -> None:
    due(queue="q", tenant="acme")
    schedule(tenant="other", delay=HOUR)
    assert not _backlog(here, "queue", "r")
    assert not _backlog(here, "tenant", "other")
