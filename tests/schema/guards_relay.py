"""What each guard of a relay prevents: a small check that fails without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
from django.db.models import F

from jobs import clock
from jobs.clock import DatabaseClock
from jobs.leases import Claimer, Relayed, may_relay, relay
from jobs.models import Hold, Process, Queue, QueueEntry, Tenant, TenantQueueLimit
from jobs.registry import registry
from jobs.results import Claim, Completed, Settlement
from tests.factories import come_due, on_the_day_of, process, schedule, server_time

Connection = psycopg.Connection[Any]
Check = Callable[[Connection], None]
HOUR = timedelta(hours=1)


def limited(here: Connection, most: int = 2, number: int = 6, **options: Any) -> tuple[Claimer, list[Claim]]:
    """A claimer that holds all that its tenant may run, of so many entries, and knows it."""
    jobs = [schedule(queue="q", tenant="acme", **options) for _ in range(number)]
    come_due(here)
    Tenant.objects.filter(pk=jobs[0].tenant_id).update(max_running=most)
    claimer = Claimer("q", process(here), registry.names())
    held = [each for _ in range(3) for each in claimer.claim(here, 9, 9)]
    assert len(held) == most
    return claimer, held


def ended(here: Connection, held: Sequence[Claim]) -> list[Settlement]:
    return [Settlement(each.held, Completed(), server_time(here)) for each in held]


def relayed(here: Connection, claimer: Claimer, held: Sequence[Claim]) -> Relayed:
    done = ended(here, held)
    assert may_relay(claimer, held[0].tenant_id, done)
    found = relay(here, claimer, held[0].tenant_id, done)
    assert found is not None
    return found


def running() -> int:
    return QueueEntry.objects.filter(lease_token__isnull=False).count()


def _nobody_starts(here: Connection, change: Callable[[], object], number: int = 6, **options: Any) -> None:
    """What has ended is settled all the same."""
    claimer, held = limited(here, 2, number, **options)
    change()
    found = relayed(here, claimer, held[:1])
    assert (found.claims, len(found.settled.fates)) == ([], 1)


def _instead(name: str, **change: Any) -> Check:
    """Nobody starts after this was done to all that wait."""

    def check(here: Connection) -> None:
        _nobody_starts(here, lambda: QueueEntry.objects.filter(lease_token=None).update(**change))

    check.__name__ = name
    return check


def of_a_lowered_limit_fewer_start(here: Connection) -> None:
    claimer, held = limited(here, 4, 9)
    Tenant.objects.update(max_running=2)
    assert relayed(here, claimer, held[:1]).claims == []
    assert relayed(here, claimer, held[1:2]).claims == []
    assert len(relayed(here, claimer, held[2:3]).claims) == 1
    assert running() == 2


def of_several_some_start_as_a_lowered_limit_allows(here: Connection) -> None:
    claimer, held = limited(here, 4, 9)
    Tenant.objects.update(max_running=2)
    assert len(relayed(here, claimer, held[:3]).claims) == 1
    assert running() == 2


def of_a_raised_limit_no_more_start_than_have_ended(here: Connection) -> None:
    claimer, held = limited(here, 2, 9)
    Tenant.objects.update(max_running=5)
    assert len(relayed(here, claimer, held[:1]).claims) == 1


def a_temporary_limit_counts(here: Connection) -> None:
    until = {"temporary_max_running": 1, "temporary_until": clock.now() + HOUR}
    _nobody_starts(here, lambda: Tenant.objects.update(**until))


def a_temporary_limit_that_is_over_does_not(here: Connection) -> None:
    claimer, held = limited(here)
    Tenant.objects.update(temporary_max_running=1, temporary_until=clock.now() - HOUR)
    assert len(relayed(here, claimer, held[:1]).claims) == 1


def what_others_run_counts_against_no_limit(here: Connection) -> None:
    claimer, held = limited(here)
    for _ in range(3):
        schedule(queue="r", tenant="other")
    come_due(here)
    assert len(Claimer("r", process(here), registry.names()).claim(here, 9, 9)) == 3
    assert len(relayed(here, claimer, held[:1]).claims) == 1


def for_a_place_that_was_lost_nobody_starts(here: Connection) -> None:
    claimer, held = limited(here)
    stolen = held[0]._replace(held=held[0].held._replace(lease_token=uuid4()))
    found = relayed(here, claimer, [stolen])
    assert (found.claims, found.settled.fates, found.settled.batch) == ([], {}, [])
    assert running() == 2


def an_ended_process_starts_nobody(here: Connection) -> None:
    """Though another lives."""

    def expire() -> None:
        Process.objects.update(lease_expires_at=clock.now() - HOUR)
        process(here)

    _nobody_starts(here, expire)


def a_rate_is_for_the_claim_to_judge(here: Connection) -> None:
    _nobody_starts(here, lambda: Tenant.objects.update(rate=1))


def a_limit_in_the_queue_is_for_the_claim_to_judge(here: Connection) -> None:
    tenant = schedule(queue="q", tenant="acme").tenant_id
    _nobody_starts(here, lambda: TenantQueueLimit.objects.create(tenant_id=tenant, queue="q", max_running=9))


def a_limit_of_others_is_none_of_his(here: Connection) -> None:
    claimer, held = limited(here)
    other = schedule(queue="r", tenant="other").tenant_id
    TenantQueueLimit.objects.create(tenant_id=held[0].tenant_id, queue="r", max_running=9)
    TenantQueueLimit.objects.create(tenant_id=other, queue="q", max_running=9)
    Queue.objects.create(name="r", max_running=0)
    Queue.objects.create(name="q")
    assert len(relayed(here, claimer, held[:1]).claims) == 1


def a_tenant_without_a_limit_is_for_the_claim(here: Connection) -> None:
    _nobody_starts(here, lambda: Tenant.objects.update(max_running=None))


def a_limit_of_the_queue_is_for_the_claim_to_judge(here: Connection) -> None:
    _nobody_starts(here, lambda: Queue.objects.create(name="q", max_running=9))


def a_rate_of_the_queue_is_for_the_claim_to_judge(here: Connection) -> None:
    _nobody_starts(here, lambda: Queue.objects.create(name="q", rate=9))


def _hold(scope: str, key: str, **options: Any) -> Callable[[], object]:
    since = clock.now() - HOUR
    return lambda: Hold.objects.create(**{"scope": scope, "key": key, "since": since, **options})


def while_everything_is_held_nobody_starts(here: Connection) -> None:
    _nobody_starts(here, _hold("all", ""))


def while_the_queue_is_held_nobody_starts(here: Connection) -> None:
    _nobody_starts(here, _hold("queue", "q"))


def while_the_tenant_is_held_nobody_starts(here: Connection) -> None:
    _nobody_starts(here, _hold("tenant", "acme"))


def what_drains_is_for_the_claim(here: Connection) -> None:
    _nobody_starts(here, _hold("queue", "q", until=clock.now() - HOUR / 2, drain=1))


def of_a_held_type_nobody_starts(here: Connection) -> None:
    _nobody_starts(here, _hold("type", "test.noop"))


def of_a_held_group_nobody_starts(here: Connection) -> None:
    _nobody_starts(here, _hold("group", "g"), group="g")


def what_has_no_group_starts(here: Connection) -> None:
    claimer, held = limited(here)
    _hold("group", "g")()
    assert len(relayed(here, claimer, held[:1]).claims) == 1


def holds_of_others_and_of_other_times_hold_nothing(here: Connection) -> None:
    claimer, held = limited(here, group="g")
    now = clock.now()
    for scope, key in (("queue", "q"), ("tenant", "acme"), ("type", "test.noop"), ("group", "g")):
        _hold(scope, "other")()
        _hold(scope, key, drained_at=now)()
        _hold(scope, key, since=now + HOUR)()
        _hold(scope, key, until=now - HOUR / 2)()
        _hold(scope, key, until=now - HOUR / 2, drain=1, drained_at=now)()
    for scope, key in (("queue", "acme"), ("tenant", "q"), ("type", "g"), ("group", "test.noop")):
        _hold(scope, key)()
    assert len(relayed(here, claimer, held[:1]).claims) == 1


def who_runs_already_is_not_started(here: Connection) -> None:
    def run() -> None:
        Tenant.objects.update(max_running=9)
        QueueEntry.objects.filter(lease_token=None).update(
            lease_token=uuid4(), process_id=process(here), claim_no=1
        )

    _nobody_starts(here, run, 3)


def it_begins_at_its_mark(here: Connection) -> None:
    claimer, held = limited(here)
    ((pair, mark),) = claimer.ring.marks.items()
    claimer.ring.advance(pair, (mark[0] + HOUR, mark[1]))
    assert relayed(here, claimer, held[:1]).claims == []


def the_number_of_a_place_is_drawn_anew(here: Connection) -> None:
    """Who counts from the oldest that he knows counts who came later, too."""
    claimer, held = limited(here, 1)
    old = QueueEntry.objects.get(job_id=held[0].held.job_id).claim_no
    (one,) = relayed(here, claimer, held).claims
    new = QueueEntry.objects.get(job_id=one.held.job_id).claim_no
    assert old is not None and new is not None and new > old  # noqa: PT018


def each_brings_its_own_payload(here: Connection) -> None:
    """Of others that are due at the same time."""
    due_at = DatabaseClock().read(here)
    jobs = {schedule("test.echo", {"n": n}, queue="q", tenant="acme", due_at=due_at).id: n for n in range(5)}
    with on_the_day_of(due_at):
        claimer, held = limited(here, 2, 1)
        seen = {each.held.job_id: each.payload for each in held}
        for each in held:
            seen |= {one.held.job_id: one.payload for one in relayed(here, claimer, [each]).claims}
    assert len(seen) == 4
    assert seen == {job_id: f'{{"n": {jobs[job_id]}}}' for job_id in seen}


RELAY: list[tuple[str, Check]] = [
    (
        "greatest(0, least(mine.count, tenant.most + mine.count - running.count))",
        of_a_lowered_limit_fewer_start,
    ),
    (" + mine.count - running.count", of_several_some_start_as_a_lowered_limit_allows),
    ("least(mine.count, ", of_a_raised_limit_no_more_start_than_have_ended),
    ("WHEN temporary_until > now() THEN temporary_max_running", a_temporary_limit_counts),
    ("CASE WHEN temporary_until > now()", a_temporary_limit_that_is_over_does_not),
    ("tenant_id = %(tenant_id)s AND lease_token IS NOT NULL", what_others_run_counts_against_no_limit),
    (" AND rate IS NULL", a_rate_is_for_the_claim_to_judge),
    (" WHERE id = %(process_id)s AND", an_ended_process_starts_nobody),
    (" AND lease_expires_at > clock_timestamp()", an_ended_process_starts_nobody),
    (
        "        AND NOT EXISTS (SELECT FROM jobs_tenantqueuelimit WHERE queue = %(queue)s AND tenant_id = %(tenant_id)s)\n",
        a_limit_in_the_queue_is_for_the_claim_to_judge,
    ),
    ("queue = %(queue)s AND tenant_id = %(tenant_id)s)", a_limit_of_others_is_none_of_his),
    (" AND tenant_id = %(tenant_id)s)", a_limit_of_others_is_none_of_his),
    ("name = %(queue)s AND ", a_limit_of_others_is_none_of_his),
    ("max_running IS NOT NULL OR ", a_limit_of_the_queue_is_for_the_claim_to_judge),
    (" OR rate IS NOT NULL", a_rate_of_the_queue_is_for_the_claim_to_judge),
    ("scope = 'all' OR ", while_everything_is_held_nobody_starts),
    ("scope = 'queue' AND key = %(queue)s OR ", while_the_queue_is_held_nobody_starts),
    (" OR scope = 'tenant' AND key = tenant.slug", while_the_tenant_is_held_nobody_starts),
    (" OR drain IS NOT NULL", what_drains_is_for_the_claim),
    (" AND key = %(queue)s", holds_of_others_and_of_other_times_hold_nothing),
    (" AND key = tenant.slug", holds_of_others_and_of_other_times_hold_nothing),
    (
        "drained_at IS NULL AND since <= now() AND (until IS NULL OR until > now() OR drain",
        holds_of_others_and_of_other_times_hold_nothing,
    ),
    (" AND since <= now()", holds_of_others_and_of_other_times_hold_nothing),
    (" AND (until IS NULL OR until > now())\n),\npick", holds_of_others_and_of_other_times_hold_nothing),
    (" WHERE scope = 'type'", holds_of_others_and_of_other_times_hold_nothing),
    (" WHERE scope = 'group'", holds_of_others_and_of_other_times_hold_nothing),
    (
        "            AND job_type <> ALL(ARRAY(SELECT key FROM held_kinds WHERE scope = 'type'))\n",
        of_a_held_type_nobody_starts,
    ),
    (
        '            AND ("group" IS NULL OR "group" <> ALL(ARRAY(SELECT key FROM held_kinds WHERE scope = \'group\')))\n',
        of_a_held_group_nobody_starts,
    ),
    ('"group" IS NULL OR ', what_has_no_group_starts),
    (
        "queue = %(queue)s AND lease_token IS NULL AND ",
        _instead("what_waits_elsewhere_is_not_started", queue="other"),
    ),
    ("lease_token IS NULL AND ", who_runs_already_is_not_started),
    (" AND parked IS NULL", _instead("what_is_parked_is_not_started", parked="type")),
    (" AND run_at <= now()\n", _instead("what_is_not_due_is_not_started", run_at=F("run_at") + HOUR)),
    (
        "job_type = ANY(%(types)s::text[]) AND ",
        _instead("what_nobody_knows_is_not_started", job_type="nobody.knows"),
    ),
    (" AND crashes < 2", _instead("a_suspect_is_not_started", crashes=2)),
    (" AND priority = pair.priority::smallint", _instead("another_pair_is_not_started", priority=-5)),
    ("(run_at, job_id) > (pair.run_at, pair.job_id) AND ", it_begins_at_its_mark),
    ("claim_no = nextval('jobs_claim_no'),", the_number_of_a_place_is_drawn_anew),
    (" AND id >= told.job_id", each_brings_its_own_payload),
]
REPLACED_RELAY = {
    "greatest(0, least(mine.count, tenant.most + mine.count - running.count))": "mine.count",
    " + mine.count - running.count": " - running.count",
    "least(mine.count, ": "greatest(0, ",
    "WHEN temporary_until > now() THEN temporary_max_running": "WHEN false THEN temporary_max_running",
    "CASE WHEN temporary_until > now()": "CASE WHEN temporary_until IS NOT NULL",
    "tenant_id = %(tenant_id)s AND lease_token IS NOT NULL": "lease_token IS NOT NULL",
    "queue = %(queue)s AND tenant_id = %(tenant_id)s)": "tenant_id = %(tenant_id)s)",
    " AND tenant_id = %(tenant_id)s)": ")",
    "drained_at IS NULL AND since <= now() AND (until IS NULL OR until > now() OR drain": (
        "since <= now() AND (until IS NULL OR until > now() OR drain"
    ),
    "queue = %(queue)s AND lease_token IS NULL AND ": "lease_token IS NULL AND ",
}
"""What cannot simply be removed."""
