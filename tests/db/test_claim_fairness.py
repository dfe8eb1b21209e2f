from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from jobs.leases import Claimer, claim
from jobs.models import Job, QueueEntry, Tenant
from jobs.registry import registry
from tests.factories import come_due, process, schedule

Connection = psycopg.Connection[Any]


def claimer(here: Connection) -> Claimer:
    """One that begins at the first tenant."""
    mine = Claimer("test.noop", process(here), registry.names())
    mine._after = 0
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


def test_a_tenant_whose_weight_fills_the_batch_does_not_come_again_before_the_others(
    here: Connection,
) -> None:
    tenant = backlog(here, {"heavy": 10, "light": 10})
    Tenant.objects.filter(pk=tenant["heavy"]).update(weight=50)
    mine = claimer(here)
    assert [set(by_tenant(mine.claim(here, 2, 2))) for _ in range(4)] == [
        {tenant["heavy"]}, {tenant["light"]}, {tenant["heavy"]}, {tenant["light"]},
    ]  # fmt: skip


def test_the_cursor_finds_tenants_on_both_sides_of_it(here: Connection) -> None:
    tenant = backlog(here, {"first": 1, "second": 1})
    mine = claimer(here)
    mine._after = tenant["first"]
    assert by_tenant(mine.claim(here, 9, 9)) == {tenant["second"]: 1}
    assert by_tenant(mine.claim(here, 9, 9)) == {tenant["first"]: 1}


def test_one_ready_tenant_is_found_behind_more_idle_ones_than_a_claim_looks_at(
    here: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim, "HOPS", 8)
    ready = backlog(here, {f"t{n:02}": 1 for n in range(40)})
    QueueEntry.objects.exclude(tenant_id=ready["t37"]).update(run_at=_later())
    for after in (0, ready["t10"], ready["t37"], ready["t39"]):
        QueueEntry.objects.filter(tenant_id=ready["t37"]).update(process_id=None, lease_token=None)
        mine = claimer(here)
        mine._after = after
        assert by_tenant(mine.claim(here, 3, 3)) == {ready["t37"]: 1}


def test_a_job_of_a_tenant_without_a_row_runs_without_limit(here: Connection) -> None:
    tenant = backlog(here, {"gone": 3})["gone"]
    here.execute("DELETE FROM jobs_tenant WHERE id = %s", [tenant])
    assert by_tenant(claimer(here).claim(here, 5, 5)) == {tenant: 3}


def test_a_claim_is_two_statements_and_three_or_four_with_limits(here: Connection) -> None:
    counted = Counted(here)
    tenant = backlog(here, {"a": 2, "b": 2})
    claimer(here).claim(counted, 2, 2)  # type: ignore[arg-type]
    assert counted.statements == 2
    Tenant.objects.filter(pk=tenant["a"]).update(max_running=5)
    counted.statements = 0
    claimer(here).claim(counted, 2, 2)  # type: ignore[arg-type]
    assert counted.statements == 3


class Counted:
    def __init__(self, connection: Connection) -> None:
        self._connection, self.statements = connection, 0

    def execute(self, *args: Any) -> Any:
        self.statements += 1
        return self._connection.execute(*args)

    def transaction(self) -> Any:
        return self._connection.transaction()


def _later() -> Any:
    return Job.objects.order_by("-created_at")[0].created_at + timedelta(hours=1)
