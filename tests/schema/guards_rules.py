"""What each guard of the rules of a claim prevents, and of the plain statement for those without: a small check that
fails without it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg

from jobs import clock
from jobs.leases import Claimer
from jobs.models import Hold, Queue, QueueEntry, RateBucket, Tenant, TenantQueueLimit
from jobs.registry import registry
from tests.db.guards_leases_free import limits_count_from_the_oldest_lease
from tests.factories import come_due, process, schedule, server_time
from tests.schema import guards_claim, guards_looks
from tests.schema.guards_claim import running, two_due

Connection = psycopg.Connection[Any]
Check = Callable[[Connection], None]
HOUR = timedelta(hours=1)


def _tenant() -> Tenant:
    return Tenant.objects.get(slug="default")


def _claimer(here: Connection, *, informed: bool = False) -> Claimer:
    """`informed`: it has looked before anything was limited."""
    mine = Claimer("test.noop", process(here), registry.names())
    mine.ring._cursor = 0
    if informed:
        mine.looks.look(here)
    return mine


def _taken(here: Connection) -> int:
    return len(_claimer(here).claim(here, 9, 9))


def _hold(scope: str, key: str = "", *, over: bool = False, **values: Any) -> Hold:
    since = clock.now() - 2 * HOUR
    made: Hold = Hold.objects.create(
        scope=scope, key=key, since=since, until=since + HOUR if over else None, **values
    )
    return made


def _pair(most: int, queue: str = "test.noop", slug: str = "default") -> None:
    TenantQueueLimit.objects.create(tenant=Tenant.objects.get(slug=slug), queue=queue, max_running=most)


def _alone(here: Connection, mine: Claimer) -> list[Any]:
    """What one statement takes that locks nothing."""
    return mine._take(here, mine.ring.choose(9), 9, 9)


# plain


def who_has_a_limit_after_all_gives_nothing(here: Connection) -> None:
    """Of whatever kind, set after the look."""
    two_due(here)
    for values in (
        {"max_running": 1},
        {"rate": 1},
        {"temporary_max_running": 1, "temporary_until": clock.now() + HOUR},
    ):
        Tenant.objects.update(max_running=None, rate=None, temporary_max_running=None)
        mine = _claimer(here, informed=True)
        mine.ring.learn(_tenant().pk, 1, False)
        Tenant.objects.update(**values)
        assert _alone(here, mine) == []


def who_has_a_temporary_limit_that_is_over_is_not_asked_twice(here: Connection) -> None:
    two_due(here)
    Tenant.objects.update(temporary_max_running=1, temporary_until=clock.now() - HOUR)
    assert len(_alone(here, _claimer(here, informed=True))) == 2


def who_has_a_limit_in_this_queue_gives_nothing(here: Connection) -> None:
    two_due(here)
    mine = _claimer(here, informed=True)
    _pair(1)
    assert _alone(here, mine) == []


def who_has_a_limit_in_another_queue_gives_all(here: Connection) -> None:
    two_due(here)
    schedule(tenant="other")
    _pair(1, "another")
    _pair(1, slug="other")
    mine = _claimer(here, informed=True)
    tenant = Tenant.objects.get(slug="default").pk
    assert [each.tenant_id for each in _alone(here, mine)] == [tenant] * 2


def a_tenant_that_is_held_gives_nothing(here: Connection) -> None:
    two_due(here)
    mine = _claimer(here, informed=True)
    _hold("tenant", "default")
    assert _alone(here, mine) == []
    assert mine.claim(here, 9, 9) == []


def a_queue_that_is_held_gives_nothing(here: Connection) -> None:
    two_due(here)
    for scope, key in (("queue", "test.noop"), ("all", "")):
        mine = _claimer(here, informed=True)
        made = _hold(scope, key)
        assert _alone(here, mine) == []
        assert mine.claim(here, 9, 9) == []
        made.delete()


def what_others_are_held_for_holds_nobody(here: Connection) -> None:
    two_due(here)
    _hold("tenant", "another")
    _hold("queue", "another")
    _hold("type", "test.echo")
    _hold("group", "default")
    assert len(_alone(here, _claimer(here, informed=True))) == 2


def a_hold_that_is_over_or_has_not_begun_holds_nobody(here: Connection) -> None:
    two_due(here)
    _hold("all", over=True)
    _hold("tenant", "default", over=True, drain=1).delete()
    Hold.objects.create(scope="all", since=clock.now() + HOUR)
    drained = _hold("all", over=True, drain=1)
    drained.drained_at = clock.now()
    drained.save()
    assert len(_alone(here, _claimer(here, informed=True))) == 2


def a_hold_in_force_holds_beside_a_limit(here: Connection) -> None:
    """By the rules, and until its end."""
    two_due(here)
    Tenant.objects.update(max_running=9)
    Queue.objects.create(name="test.noop", max_running=9)
    for scope, key in (("tenant", "default"), ("queue", "test.noop"), ("all", "")):
        made = _hold(scope, key)
        assert _taken(here) == 0
        Hold.objects.filter(pk=made.pk).update(until=server_time(here) + HOUR)
        assert _taken(here) == 0
        made.delete()
    _hold("tenant", "another")
    Hold.objects.create(scope="all", since=clock.now() + HOUR)
    _hold("queue", "test.noop", over=True)
    _hold("tenant", "default", over=True, drain=500)
    drains = _hold("queue", "test.noop", over=True, drain=500)
    RateBucket.objects.create(scope="hold", key=str(drains.pk), tokens=100)
    assert _taken(here) == 2


# the rules


def a_tenant_that_another_has_locked_gives_nothing_beside_one_that_we_have(here: Connection) -> None:
    two_due(here)
    schedule(tenant="other")
    come_due(here)
    mine = _claimer(here, informed=True)
    mine.ring.limited.add(Tenant.objects.get(slug="other").pk)
    Tenant.objects.update(max_running=5)
    here.execute("SELECT set_config('punctual.tenants', '', true)")
    assert {each.tenant for each in _alone(here, mine)} == {"other"}


def a_limit_in_a_queue_counts_what_runs_there(here: Connection) -> None:
    two_due(here, **running(here))
    elsewhere = schedule(queue="another")
    QueueEntry.objects.filter(job_id=elsewhere.id).update(**{**running(here), "claim_no": 0})
    _pair(1)
    assert _taken(here) == 0
    TenantQueueLimit.objects.update(max_running=2)
    assert _taken(here) == 1


def a_limit_in_another_queue_or_of_another_tenant_is_none(here: Connection) -> None:
    two_due(here)
    schedule(tenant="other", queue="another")
    _pair(0, "another")
    _pair(0, slug="other")
    Tenant.objects.update(max_running=9)
    assert _taken(here) == 2


def a_temporary_limit_holds_until_its_time(here: Connection) -> None:
    two_due(here)
    Tenant.objects.update(max_running=1, temporary_max_running=2, temporary_until=clock.now() + HOUR)
    assert _taken(here) == 2
    QueueEntry.objects.update(lease_token=None, process_id=None)
    Tenant.objects.update(temporary_until=clock.now() - HOUR)
    assert _taken(here) == 1


def _rated(here: Connection, kind: str, **values: Any) -> None:
    if kind == "tenant":
        Tenant.objects.update(**values)
    else:
        Queue.objects.update_or_create(name="test.noop", defaults=values)


def a_rate_holds_the_starts_back_and_time_brings_more(here: Connection) -> None:
    for kind in ("tenant", "queue"):
        for _ in range(9):
            schedule()
        come_due(here)
        _rated(here, kind, rate=60, rate_per="hour", burst=2)
        assert [_taken(here), _taken(here)] == [2, 0]
        assert RateBucket.objects.get().tokens < 0.5
        RateBucket.objects.update(refilled_at=server_time(here) - timedelta(seconds=61))
        assert [_taken(here), _taken(here)] == [1, 0]
        RateBucket.objects.update(refilled_at=server_time(here) - 9 * HOUR)
        assert _taken(here) == 2
        RateBucket.objects.update(tokens=1.5, refilled_at=server_time(here) + 9 * HOUR)
        assert [_taken(here), _taken(here)] == [1, 0], "a clock that went back takes nothing away"
        _rated(here, kind, rate=0, burst=None)
        RateBucket.objects.all().delete()
        assert _taken(here) == 0
        _rated(here, kind, rate=None)
        QueueEntry.objects.all().delete()


def a_rate_is_said_in_its_unit(here: Connection) -> None:
    for kind in ("tenant", "queue"):
        for per, seconds in (("second", 1), ("minute", 60), ("hour", 3600)):
            for _ in range(9):
                schedule()
            come_due(here)
            _rated(here, kind, rate=2, rate_per=per, burst=4)
            RateBucket.objects.create(
                scope=kind,
                key=str(_tenant().pk) if kind == "tenant" else "test.noop",
                tokens=0.2,
                refilled_at=server_time(here) - timedelta(seconds=seconds),
            )
            assert _taken(here) == 2
            RateBucket.objects.all().delete()
            QueueEntry.objects.all().delete()
        _rated(here, kind, rate=None, burst=None)


def what_drains_comes_at_its_rate(here: Connection) -> None:
    for scope, key in (("tenant", "default"), ("queue", "test.noop"), ("all", "")):
        for _ in range(9):
            schedule()
        come_due(here)
        made = _hold(scope, key, over=True, drain=2)
        first = _taken(here)
        assert 0 < first <= 2
        bucket = RateBucket.objects.get()
        assert (bucket.scope, bucket.tokens < 1.5) == ("tenant" if scope == "tenant" else "hold", True)
        RateBucket.objects.update(tokens=0, refilled_at=server_time(here) + HOUR)
        assert _taken(here) == 0
        RateBucket.objects.update(tokens=0, refilled_at=server_time(here) - HOUR)
        assert _taken(here) == 2
        made.delete()
        RateBucket.objects.all().delete()
        QueueEntry.objects.all().delete()


def only_what_drains_is_locked(here: Connection) -> None:
    two_due(here)
    _hold("all", over=True, drain=5)
    drains = Hold.objects.get()
    _hold("queue", "another", over=True, drain=5)
    _hold("tenant", "default")
    _hold("all")
    _taken(here)
    assert here.execute("SELECT current_setting('punctual.drains')").fetchone() == (str(drains.pk),)


def who_is_held_or_out_of_tokens_says_for_how_long(here: Connection) -> None:
    two_due(here)
    tenant = _tenant().pk
    _rated(here, "tenant", rate=1, rate_per="hour", burst=1)
    assert _taken(here) == 1
    mine = _claimer(here)
    ((_, wait),) = mine._ask(here, [tenant])
    assert wait is not None
    assert 3500 < wait <= 3600
    _rated(here, "tenant", rate=None, burst=None)
    assert mine._ask(here, [tenant]) == [(tenant, None)]
    _hold("tenant", "default")
    assert mine._ask(here, [tenant]) == [(tenant, float("inf"))]


TENANT_LEASED = " AND entry.tenant_id = share.tenant_id"
RULES: dict[str, list[tuple[str, Check]]] = {
    "parts/plain": [
        ("lease_expires_at > clock_timestamp()", guards_claim.a_dead_process_claims_nothing),
        (" WHERE id = %(process_id)s AND", guards_claim.a_dead_process_claims_nothing),
        ("WHEN rule.limited THEN 0", guards_claim.a_tenant_that_was_not_locked_gives_nothing),
        ("WHEN rule.limited OR rule.draining THEN 0", guards_claim.a_queue_that_was_not_locked_gives_nothing),
        ("rate IS NOT NULL\n                OR CASE", who_has_a_limit_after_all_gives_nothing),
        ("temporary_until > now()", who_has_a_limit_after_all_gives_nothing),
        ("CASE WHEN temporary_until > now() THEN", who_has_a_temporary_limit_that_is_over_is_not_asked_twice),
        (" OR EXISTS (SELECT FROM jobs_tenantqueuelimit", who_has_a_limit_in_this_queue_gives_nothing),
        ("queue = %(queue)s AND tenant_id", who_has_a_limit_in_another_queue_gives_all),
        (" AND tenant_id = share.tenant_id", who_has_a_limit_in_another_queue_gives_all),
        ("OR tenant.slug IN (", a_tenant_that_is_held_gives_nothing),
        ("rule.limited OR rule.draining", a_queue_that_is_held_gives_nothing),
        (" WHERE scope = 'tenant'", a_tenant_that_is_held_gives_nothing),
        (" AND key = %(queue)s", what_others_are_held_for_holds_nobody),
        ("drained_at IS NULL AND ", a_hold_that_is_over_or_has_not_begun_holds_nobody),
        ("since <= now() AND ", a_hold_that_is_over_or_has_not_begun_holds_nobody),
        (
            "(until IS NULL OR until > now() OR drain IS NOT NULL)",
            a_hold_that_is_over_or_has_not_begun_holds_nobody,
        ),
    ],
    "parts/rules": [
        ("WHEN NOT rule.held THEN 0", a_tenant_that_another_has_locked_gives_nothing_beside_one_that_we_have),
        ("tenant.max_running - running.count", guards_claim.a_tenants_limit_counts_what_runs),
        ("queue.max_running - running.count", guards_claim.a_queues_limit_counts_what_runs),
        ("pair.max_running - running.here", a_limit_in_a_queue_counts_what_runs_there),
        (" FILTER (WHERE queue = %(queue)s)", a_limit_in_a_queue_counts_what_runs_there),
        (" AND queue = %(queue)s AND tenant_id", a_limit_in_another_queue_or_of_another_tenant_is_none),
        (
            " AND tenant_id = share.tenant_id\n        LIMIT 1",
            a_limit_in_another_queue_or_of_another_tenant_is_none,
        ),
        (
            "CASE WHEN pair.max_running IS NULL THEN tenant.max_running END",
            a_limit_in_a_queue_counts_what_runs_there,
        ),
        (" AND entry.lease_token IS NOT NULL", guards_claim.what_waits_again_counts_against_no_limit),
        (" AND entry.process_id IS NOT NULL", guards_claim.what_waits_again_counts_against_no_limit),
        (TENANT_LEASED, guards_claim.what_others_run_counts_against_no_limit),
        (" AND entry.queue = %(queue)s", guards_claim.what_others_run_counts_against_no_limit),
        ("AND entry.claim_no >= share.oldest", limits_count_from_the_oldest_lease),
        ("AND entry.claim_no >= %(queue_oldest)s", limits_count_from_the_oldest_lease),
        ("temporary_until > now()", a_temporary_limit_holds_until_its_time),
        ("WHEN rule.stopped THEN 0", a_hold_in_force_holds_beside_a_limit),
        ("AND since <= now() ", a_hold_in_force_holds_beside_a_limit),
        ("(until IS NULL OR until > now() OR drain IS NOT NULL)", a_hold_in_force_holds_beside_a_limit),
        (" AND NOT ended", a_hold_in_force_holds_beside_a_limit),
        ("least(slots.free, floor(saved.tokens)::bigint)", a_rate_holds_the_starts_back_and_time_brings_more),
        ("floor(saved.tokens)::bigint, drain.tokens", a_rate_holds_the_starts_back_and_time_brings_more),
        (
            "greatest(0, extract(epoch FROM moment.read_at - refilled_at))",
            a_rate_holds_the_starts_back_and_time_brings_more,
        ),
        ("WHEN rated.rate = 0 THEN 0", a_rate_holds_the_starts_back_and_time_brings_more),
        ("least(rated.burst, ", a_rate_holds_the_starts_back_and_time_brings_more),
        ("WHEN 'minute' THEN 60 ", a_rate_is_said_in_its_unit),
        ("least(tenant.rate, ended.drain) AS rate", what_drains_comes_at_its_rate),
        (", drain.tokens", what_drains_comes_at_its_rate),
        ("least(hold.drain, ", what_drains_comes_at_its_rate),
        ("OR rated.rate = 0 THEN 'Infinity'", who_is_held_or_out_of_tokens_says_for_how_long),
        ("(floor(saved.tokens) + 1 - saved.tokens)", who_is_held_or_out_of_tokens_says_for_how_long),
    ],
    "parts/spent": [
        ("tokens = excluded.tokens, ", a_rate_holds_the_starts_back_and_time_brings_more),
        (", refilled_at = excluded.refilled_at", a_rate_holds_the_starts_back_and_time_brings_more),
        (" - owner.count", a_rate_holds_the_starts_back_and_time_brings_more),
        ("FROM tenants JOIN taken USING (ord)", a_rate_holds_the_starts_back_and_time_brings_more),
        ("'hold', drains.id::text", what_drains_comes_at_its_rate),
    ],
    "free": [
        ("CASE WHEN allowed = 0 THEN coalesce(wait, 0) END", guards_looks.who_is_full_is_not_free),
        ("WHEN allowed = 0 ", guards_looks.who_has_a_slot_is_free),
        ("coalesce(wait, 0)", who_is_held_or_out_of_tokens_says_for_how_long),
    ],
    "lock_tenants": [
        ("id = ANY(%(limited)s::bigint[])", guards_claim.a_claim_locks_the_limited_alone),
        (
            "coalesce(max_running, temporary_max_running, rate) IS NOT NULL",
            guards_claim.a_claim_locks_the_limited_alone,
        ),
    ],
    "lock_queue": [
        ("name = %(queue)s AND ", guards_claim.a_claim_locks_its_own_queue_alone),
        (" AND (scope = 'all' OR scope = 'queue' AND key = %(queue)s)", only_what_drains_is_locked),
        (" AND until <= now() AND drain IS NOT NULL", only_what_drains_is_locked),
    ],
}
REPLACED_RULES = {
    "lease_expires_at > clock_timestamp()": "true",
    "WHEN rule.limited THEN 0": "WHEN false THEN 0",
    "rate IS NOT NULL\n                OR CASE": "CASE",
    "temporary_until > now()": "false",
    "CASE WHEN temporary_until > now() THEN": "CASE WHEN true THEN",
    " OR EXISTS (SELECT FROM jobs_tenantqueuelimit": " OR false AND EXISTS (SELECT FROM jobs_tenantqueuelimit",
    "queue = %(queue)s AND tenant_id": "tenant_id",
    "OR tenant.slug IN (": "OR false AND tenant.slug IN (",
    "rule.limited OR rule.draining": "rule.limited",
    " WHERE scope = 'tenant'": " WHERE scope = 'queue'",
    "pair.max_running - running.here": "pair.max_running",
    " AND queue = %(queue)s AND tenant_id": " AND tenant_id",
    " AND tenant_id = share.tenant_id\n        LIMIT 1": "\n        LIMIT 1",
    "CASE WHEN pair.max_running IS NULL THEN tenant.max_running END": "1",
    "least(slots.free, floor(saved.tokens)::bigint)": "slots.free",
    "floor(saved.tokens)::bigint, drain.tokens": "drain.tokens",
    "greatest(0, extract(epoch FROM moment.read_at - refilled_at))": "extract(epoch FROM moment.read_at - refilled_at)",
    "WHEN rated.rate = 0 THEN 0": "WHEN rated.rate = 0 THEN 5",
    "least(rated.burst, ": "greatest(0, ",
    "least(tenant.rate, ended.drain) AS rate": "tenant.rate AS rate",
    "least(hold.drain, ": "greatest(0, ",
    "OR rated.rate = 0 THEN 'Infinity'": "AND rated.rate = 0 THEN 'Infinity'",
    "(floor(saved.tokens) + 1 - saved.tokens)": "saved.tokens",
    "tokens = excluded.tokens, ": "tokens = bucket.tokens, ",
    ", refilled_at = excluded.refilled_at": "",
    "FROM tenants JOIN taken USING (ord)": "FROM tenants JOIN taken USING (ord) WHERE false",
    "'hold', drains.id::text": "'hold', 'x' || drains.id::text",
    "CASE WHEN allowed = 0 THEN coalesce(wait, 0) END": "NULL::float8",
    "WHEN allowed = 0 ": "WHEN true ",
    "coalesce(wait, 0)": "0",
    "id = ANY(%(limited)s::bigint[])": "(true OR id = ANY(%(limited)s::bigint[]))",
    "coalesce(max_running, temporary_max_running, rate) IS NOT NULL": "true",
    "(until IS NULL OR until > now() OR drain IS NOT NULL)": "true",
}
