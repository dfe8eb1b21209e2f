"""Holds of everything, a tenant or a queue: no claim takes what is held, and what drains comes at its rate."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import psycopg
import pytest

from jobs import clock
from jobs.leases import door, looks, passed
from jobs.leases.claim import Claimer
from jobs.leases.passed import LONGEST_WAIT
from jobs.models import Hold, RateBucket, Tenant
from tests.db.test_claim_fairness import backlog, by_tenant, claimer
from tests.factories import server_time
from tests.statements import Noting
from tests.unit.looking import TIME

Connection = psycopg.Connection[Any]
SCOPES = {"all": "", "tenant": "a", "queue": "test.noop"}


@pytest.fixture(autouse=True)
def _time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (door, passed):
        monkeypatch.setattr(module, "time", TIME)
    monkeypatch.setattr(looks, "EVERY", 1e6)


def hold(scope: str, key: str | None = None, **values: Any) -> Hold:
    values.setdefault("since", clock.now() - timedelta(hours=1))
    made: Hold = Hold.objects.create(scope=scope, key=SCOPES[scope] if key is None else key, **values)
    return made


def sent(here: Connection, mine: Claimer) -> list[str]:
    noting = Noting(here)
    mine.claim(cast(Connection, noting), 9, 9)
    return noting.sent


@pytest.mark.parametrize("scope", SCOPES)
def test_nothing_starts_of_what_is_held(here: Connection, scope: str) -> None:
    backlog(here, {"a": 3})
    hold(scope)
    assert claimer(here).claim(here, 9, 9) == []


@pytest.mark.parametrize("scope", SCOPES)
def test_a_hold_binds_the_claims_that_come_after_it(here: Connection, scope: str) -> None:
    backlog(here, {"a": 9})
    mine = claimer(here)
    assert len(mine.claim(here, 2, 2)) == 2
    hold(scope)
    assert mine.claim(here, 9, 9) == []


@pytest.mark.parametrize("scope", SCOPES)
def test_a_hold_that_was_lifted_is_noticed_within_the_longest_wait(here: Connection, scope: str) -> None:
    backlog(here, {"a": 3})
    made = hold(scope)
    mine = claimer(here)
    assert mine.claim(here, 9, 9) == []
    assert mine.waiting
    assert 0 < (mine.retry_in() or 0) <= LONGEST_WAIT
    made.until = made.drained_at = server_time(here)
    made.save()
    TIME.now += LONGEST_WAIT
    assert len(mine.claim(here, 9, 9)) == 3
    assert not mine.passed


@pytest.mark.parametrize("scope", SCOPES)
def test_what_is_held_is_not_asked_for_again_and_again(here: Connection, scope: str) -> None:
    backlog(here, {"a": 3})
    hold(scope)
    mine = claimer(here)
    mine.claim(here, 9, 9)
    for _ in range(5):
        TIME.now += LONGEST_WAIT / 20
        assert not {"claim", "free"} & set(sent(here, mine))
    TIME.now += LONGEST_WAIT
    assert {"claim", "free"} & set(sent(here, mine))


def test_others_are_not_held_with_it(here: Connection) -> None:
    tenant = backlog(here, {"a": 3, "b": 3})
    hold("tenant")
    hold("queue", "another")
    hold("type", "another")
    mine = claimer(here)
    assert by_tenant([each for _ in range(3) for each in mine.claim(here, 9, 9)]) == {tenant["b"]: 3}


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(
    ("since", "until", "taken"),
    [(-1, None, 0), (-1, 1, 0), (1, None, 3), (1, 2, 3), (-2, -1, 3)],
    ids=["for ever", "for an hour", "later", "for an hour, later", "over"],
)
def test_a_hold_lasts_from_its_beginning_to_its_end(
    here: Connection, scope: str, since: int, until: int | None, taken: int
) -> None:
    backlog(here, {"a": 3})
    now, hour = server_time(here), timedelta(hours=1)
    hold(scope, since=now + since * hour, until=None if until is None else now + until * hour)
    assert len(claimer(here).claim(here, 9, 9)) == taken


def test_of_several_holds_each_counts(here: Connection) -> None:
    backlog(here, {"a": 3})
    first, second = hold("tenant"), hold("tenant")
    for each in (first, second):
        assert claimer(here).claim(here, 9, 9) == []
        each.delete()
    assert len(claimer(here).claim(here, 9, 9)) == 3


def test_a_held_tenant_under_a_limit_is_passed_over_as_held(here: Connection) -> None:
    tenant = backlog(here, {"a": 3})["a"]
    Tenant.objects.update(max_running=2)
    hold("tenant")
    mine = claimer(here)
    assert mine.claim(here, 9, 9) == []
    assert set(mine.passed.later) == {tenant}


@pytest.mark.parametrize("scope", SCOPES)
def test_what_drains_comes_at_its_rate_and_the_rest_at_once_when_it_is_over(
    here: Connection, scope: str
) -> None:
    backlog(here, {"a": 20})
    now = server_time(here)
    made = hold(scope, since=now - timedelta(hours=2), until=now - timedelta(hours=1), drain=2)
    mine = claimer(here)
    mine.claim(here, 9, 9)
    for _ in range(3):
        mine.claim(here, 9, 9)
        RateBucket.objects.update(tokens=0, refilled_at=server_time(here) + timedelta(minutes=1))
        TIME.now += LONGEST_WAIT
        assert mine.claim(here, 9, 9) == []
        RateBucket.objects.update(refilled_at=server_time(here) - timedelta(seconds=60))
        TIME.now += LONGEST_WAIT
        assert 0 < len(mine.claim(here, 9, 9)) <= 2
    Hold.objects.filter(pk=made.pk).update(drained_at=now)
    TIME.now += LONGEST_WAIT
    assert len(mine.claim(here, 9, 9)) == 9


def test_what_drains_holds_no_limited_tenant_back(here: Connection) -> None:
    """Its queue has no row that could be locked."""
    backlog(here, {"a": 9})
    Tenant.objects.update(max_running=4)
    now = server_time(here)
    hold("queue", since=now - timedelta(hours=2), until=now - timedelta(hours=1), drain=1000)
    mine = claimer(here)
    RateBucket.objects.create(scope="hold", key=str(Hold.objects.get().pk), tokens=1000)
    assert sum(len(mine.claim(here, 9, 9)) for _ in range(3)) == 4
