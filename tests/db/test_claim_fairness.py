from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any, cast

import psycopg
import pytest

from jobs.leases import Claimer, looks
from jobs.models import Job, Queue, QueueEntry, Tenant
from jobs.registry import registry
from jobs.results import Claim
from tests.factories import come_due, process, schedule
from tests.statements import Noting

Connection = psycopg.Connection[Any]


def claimer(here: Connection) -> Claimer:
    """One that begins at the first tenant."""
    mine = Claimer("test.noop", process(here), registry.names())
    mine.ring._cursor = 0
    return mine


def by_tenant(taken: list[Claim]) -> Counter[int]:
    return Counter(each.tenant_id for each in taken)


def backlog(here: Connection, tenants: dict[str, int], **options: Any) -> dict[str, int]:
    """So many due jobs of each tenant; returns the tenants' ids, in their order of making."""
    jobs = {slug: [schedule(tenant=slug, **options) for _ in range(n)] for slug, n in tenants.items()}
    come_due(here)
    return {slug: some[-1].tenant_id for slug, some in jobs.items()}


def test_a_large_backlog_leaves_room_for_the_others_in_each_claim(here: Connection) -> None:
    tenant = backlog(here, {"large": 20, "small": 2, "middle": 4})
    taken = by_tenant(claimer(here).claim(here, 9, 9))
    assert taken == {tenant["large"]: 3, tenant["small"]: 2, tenant["middle"]: 3}


def test_a_priority_never_passes_another_tenant(here: Connection) -> None:
    proud = backlog(here, {"proud": 8}, priority=100)["proud"]
    modest = backlog(here, {"modest": 8}, priority=-100)["modest"]
    assert by_tenant(claimer(here).claim(here, 6, 6)) == {proud: 3, modest: 3}


def test_a_tenant_on_many_priorities_gets_no_more_than_one_on_a_single_one(here: Connection) -> None:
    for priority in range(10):
        many = schedule(tenant="many", priority=priority).tenant_id
    one = backlog(here, {"one": 10})["one"]
    mine = claimer(here)
    taken = by_tenant([each for _ in range(5) for each in mine.claim(here, 2, 2)])
    assert taken == {many: 5, one: 5}


def test_a_tenant_gets_its_weight_in_each_claim(here: Connection) -> None:
    tenant = backlog(here, {"heavy": 20, "light": 20})
    Tenant.objects.filter(pk=tenant["heavy"]).update(weight=3)
    assert by_tenant(claimer(here).claim(here, 8, 8)) == {tenant["heavy"]: 6, tenant["light"]: 2}


def test_a_batch_smaller_than_the_number_of_tenants_goes_round(here: Connection) -> None:
    tenant = backlog(here, {f"t{n}": 2 for n in range(5)})
    mine = claimer(here)
    rounds = [by_tenant(mine.claim(here, 2, 2)) for _ in range(5)]
    assert sum(rounds, Counter()) == dict.fromkeys(tenant.values(), 2)
    assert set(rounds[0]) | set(rounds[1]) | set(rounds[2]) == set(tenant.values())


def test_a_tenant_of_more_weight_than_a_batch_is_served_all_of_it_before_the_next_one(
    here: Connection,
) -> None:
    """So who has waited longest is served within (sum of weights / batch) + 1 claims: here 6 / 2 + 1."""
    tenant = backlog(here, {"heavy": 20, "light": 10})
    Tenant.objects.filter(pk=tenant["heavy"]).update(weight=5)
    mine = claimer(here)
    whole, rest = {tenant["heavy"]: 2}, {tenant["heavy"]: 1, tenant["light"]: 1}
    assert [by_tenant(mine.claim(here, 2, 2)) for _ in range(9)] == [whole, whole, rest] * 3


def test_a_tenant_that_has_just_come_waits_for_no_more_than_everybodys_weight(here: Connection) -> None:
    slugs = {f"t{n}": n + 1 for n in range(5)}
    tenant = backlog(here, dict.fromkeys(slugs, 20))
    for slug, weight in slugs.items():
        Tenant.objects.filter(pk=tenant[slug]).update(weight=weight)
    mine = claimer(here)
    for _ in range(4):
        mine.claim(here, 4, 4)
    late = backlog(here, {"late": 1})["late"]
    mine.looks.forget()
    waited = 1
    while late not in by_tenant(mine.claim(here, 4, 4)):
        waited += 1
    assert waited <= (sum(slugs.values()) + 1) / 4 + 1


@pytest.mark.parametrize("cursor", ["first", "between", "second", "behind"])
def test_tenants_are_found_on_both_sides_of_the_cursor(here: Connection, cursor: str) -> None:
    tenant = backlog(here, {"first": 1, "second": 1})
    mine, first, second = claimer(here), tenant["first"], tenant["second"]
    mine.ring._cursor = {"first": first, "between": first + 1, "second": second, "behind": second + 1}[cursor]
    assert by_tenant(mine.claim(here, 9, 9)) == {first: 1, second: 1}


@pytest.mark.parametrize("ready", ["t00", "t20", "t39"])
def test_one_ready_tenant_is_found_among_many_idle_ones(here: Connection, ready: str) -> None:
    tenant = backlog(here, {f"t{n:02}": 1 for n in range(40)})
    QueueEntry.objects.exclude(tenant_id=tenant[ready]).update(run_at=_later())
    assert by_tenant(claimer(here).claim(here, 3, 3)) == {tenant[ready]: 1}


def test_a_job_of_a_tenant_without_a_row_runs_without_limit(here: Connection) -> None:
    tenant = backlog(here, {"gone": 3})["gone"]
    here.execute("DELETE FROM jobs_tenant WHERE id = %s", [tenant])
    assert by_tenant(claimer(here).claim(here, 5, 5)) == {tenant: 3}


def test_a_claim_is_one_statement_and_two_or_three_in_one_round_trip_with_limits(
    here: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "EVERY", 1e6)
    noting = Noting(here)
    tenant = backlog(here, {"a": 20, "b": 20})
    mine = claimer(here)

    def sent(times: int = 1) -> list[str]:
        noting.sent.clear()
        for _ in range(times):
            mine.claim(cast(Connection, noting), 2, 2)
        return noting.sent

    assert sent() == ["hop", "look", "claim"]
    assert sent(2) == ["claim"] * 2
    Tenant.objects.filter(pk=tenant["a"]).update(max_running=20)
    sent()  # it learns of the limit by a claim that gave nothing of this tenant
    assert sent() == ["pipeline", "lock_tenants", "claim"]
    Queue.objects.create(name="test.noop", max_running=50)
    sent()
    assert sent() == ["pipeline", "lock_queue", "lock_tenants", "claim"]


def _later() -> Any:
    return Job.objects.order_by("-created_at")[0].created_at + timedelta(hours=1)
