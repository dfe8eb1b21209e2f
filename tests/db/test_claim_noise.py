"""What a claimer makes of tenants that hold their share of its process."""

from __future__ import annotations

from typing import Any, cast

import psycopg
import pytest

from jobs.leases import door, looks, passed
from jobs.leases.passed import LONGEST_WAIT
from jobs.models import Queue, Tenant
from tests.db.test_claim_fairness import backlog, by_tenant, claimer
from tests.statements import Noting
from tests.unit.looking import TIME

Connection = psycopg.Connection[Any]


class Noise:
    """So many more may be claimed of each tenant; the others have no bound."""

    def __init__(self, **rooms: int) -> None:
        self.rooms = {int(name.removeprefix("t")): room for name, room in rooms.items()}
        self.asked: list[tuple[int, float | None, bool]] = []

    def room(self, tenant_id: int, share: float | None, *, rivals: bool) -> int | None:
        self.asked.append((tenant_id, share, rivals))
        return self.rooms.get(tenant_id)


@pytest.fixture(autouse=True)
def _time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (door, passed):
        monkeypatch.setattr(module, "time", TIME)
    monkeypatch.setattr(looks, "EVERY", 1e6)


def test_no_more_of_a_tenant_is_claimed_than_there_is_room_for(here: Connection) -> None:
    tenant = backlog(here, {"loud": 20, "quiet": 3})
    mine, noise = claimer(here), Noise(**{f"t{tenant['loud']}": 2})
    assert by_tenant(mine.claim(here, 10, 10, noise)) == {tenant["loud"]: 2, tenant["quiet"]: 3}
    assert by_tenant(mine.claim(here, 10, 10)) == {tenant["loud"]: 10}


def test_who_has_no_room_is_passed_over_until_one_of_its_jobs_ends(here: Connection) -> None:
    tenant = backlog(here, {"loud": 20, "quiet": 9})
    mine, noise = claimer(here), Noise(**{f"t{tenant['loud']}": 0})
    assert by_tenant(mine.claim(here, 4, 4, noise)) == {tenant["quiet"]: 2}
    assert by_tenant(mine.claim(here, 4, 4, noise)) == {tenant["quiet"]: 4}
    assert [each for each, _, _ in noise.asked].count(tenant["loud"]) == 1
    noise.rooms[tenant["loud"]] = 1
    mine.settled(tenant["quiet"])
    assert tenant["loud"] not in mine.ring
    mine.settled(tenant["loud"])
    assert by_tenant(mine.claim(here, 4, 4, noise))[tenant["loud"]] == 1


def test_who_has_no_room_is_asked_for_again_after_the_longest_wait(here: Connection) -> None:
    tenant = backlog(here, {"loud": 9})["loud"]
    mine, noise = claimer(here), Noise(**{f"t{tenant}": 0})
    assert mine.claim(here, 4, 4, noise) == []
    assert mine.waiting
    assert (mine.retry_in() or 0) == pytest.approx(LONGEST_WAIT)
    noise.rooms.clear()
    TIME.now += LONGEST_WAIT
    assert by_tenant(mine.claim(here, 4, 4, noise)) == {tenant: 4}


def test_when_nobody_has_room_no_statement_is_sent(here: Connection) -> None:
    tenant = backlog(here, {"loud": 9})["loud"]
    mine, noise = claimer(here), Noise(**{f"t{tenant}": 0})
    mine.looks.look(here)
    noting = Noting(here)
    assert mine.claim(cast(Connection, noting), 4, 4, noise) == []
    assert noting.sent == []


def test_it_is_told_whether_others_wait_and_the_queues_own_share(here: Connection) -> None:
    tenant = backlog(here, {"a": 9, "b": 2})
    Queue.objects.create(name="test.noop", noisy_share=0.25)
    mine, noise = claimer(here), Noise()
    mine.claim(here, 4, 4, noise)
    mine.claim(here, 4, 4, noise)
    mine.claim(here, 2, 2, noise)
    assert noise.asked[0] == (tenant["a"], None, True)
    assert noise.asked[-1] == (tenant["a"], 0.25, False)


def test_who_may_fill_the_workers_is_not_asked_for(here: Connection) -> None:
    tenant = backlog(here, {"loud": 9})["loud"]
    Tenant.objects.update(noisy_exempt=True)
    mine, noise = claimer(here), Noise()
    assert len(mine.claim(here, 2, 2, noise)) == 2  # so a claimer learns of it
    noise.rooms[tenant] = 0
    assert len(mine.claim(here, 2, 2, noise)) == 2
    Tenant.objects.update(noisy_exempt=False)
    assert len(mine.claim(here, 2, 2, noise)) == 2
    assert mine.claim(here, 2, 2, noise) == []
