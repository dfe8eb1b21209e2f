"""Rates: how often jobs of a tenant or a queue start, whoever claims them."""

from __future__ import annotations

import math
import time
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from jobs.leases import door, looks, passed, settle
from jobs.leases.passed import FREE_SECONDS, LONGEST_WAIT
from jobs.models import Queue, RateBucket, Tenant
from jobs.results import Completed, Settlement
from tests.db.test_claim_fairness import backlog, by_tenant, claimer
from tests.unit.looking import TIME

Connection = psycopg.Connection[Any]
QUEUE = "test.noop"


@pytest.fixture(autouse=True)
def _time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (door, passed):
        monkeypatch.setattr(module, "time", TIME)
    monkeypatch.setattr(looks, "EVERY", 1e6)


def rate(kind: str, **values: Any) -> None:
    if kind == "tenant":
        Tenant.objects.update(**values)
    else:
        Queue.objects.update_or_create(name=QUEUE, defaults=values)


def pass_by(seconds: float) -> None:
    """As if so long had gone by, for the buckets and for who waits."""
    TIME.now += max(0.0, seconds)
    for bucket in RateBucket.objects.all():
        bucket.refilled_at -= timedelta(seconds=seconds)
        bucket.save()


def claims(here: Connection, times: int = 4) -> int:
    """How many a fresh claimer gets in so many claims."""
    mine = claimer(here)
    return sum(len(mine.claim(here, 9, 9)) for _ in range(times))


@pytest.mark.parametrize("kind", ["tenant", "queue"])
@pytest.mark.parametrize(
    ("values", "starts"),
    [
        ({"rate": 3, "rate_per": "second"}, 3),
        ({"rate": 3, "rate_per": "hour", "burst": 2}, 2),
        ({"rate": 90, "rate_per": "minute"}, 2),
        ({"rate": 5, "rate_per": "hour"}, 1),
        ({"rate": 0}, 0),
        ({"rate": None}, 20),
    ],
)
def test_at_first_as_many_start_as_were_saved_up(
    here: Connection, kind: str, values: dict[str, Any], starts: int
) -> None:
    backlog(here, {"a": 20})
    rate(kind, **values)
    begun = time.monotonic()
    found = claims(here)
    brought = 3 * (time.monotonic() - begun) if values.get("rate_per") == "second" else 0
    assert starts <= found <= starts + math.ceil(brought)


@pytest.mark.parametrize("kind", ["tenant", "queue"])
def test_then_as_many_as_time_brings_and_never_more_than_the_burst(here: Connection, kind: str) -> None:
    backlog(here, {"a": 30})
    rate(kind, rate=60, rate_per="hour", burst=4)
    assert claims(here) == 4
    assert claims(here) == 0
    for minutes, starts in ((1, 1), (2.5, 2), (0.5, 1), (100, 4)):
        pass_by(minutes * 60 + 0.1)
        assert claims(here) == starts


@pytest.mark.parametrize("kind", ["tenant", "queue"])
def test_a_claimer_knows_when_the_next_one_may_start(here: Connection, kind: str) -> None:
    tenant = backlog(here, {"a": 5})["a"]
    rate(kind, rate=2, rate_per="second", burst=1)
    mine = claimer(here)
    assert len(mine.claim(here, 9, 9)) == 1
    assert mine.claim(here, 9, 9) == []
    assert mine.waiting
    assert not mine.claimable
    assert FREE_SECONDS < (mine.retry_in() or 0) <= 0.5
    pass_by(0.6)
    assert by_tenant(mine.claim(here, 9, 9)) == {tenant: 1}


@pytest.mark.parametrize("kind", ["tenant", "queue"])
@pytest.mark.parametrize(
    "values", [{"rate": None, "burst": None}, {"rate": 100, "burst": 100, "rate_per": "second"}]
)
def test_a_rate_that_was_raised_is_noticed_within_the_longest_wait(
    here: Connection, kind: str, values: dict[str, Any]
) -> None:
    backlog(here, {"a": 5})
    rate(kind, rate=1, rate_per="hour", burst=1)
    mine = claimer(here)
    assert len(mine.claim(here, 9, 9)) == 1
    assert mine.claim(here, 9, 9) == []
    RateBucket.objects.all().delete()
    rate(kind, **values)
    assert (mine.retry_in() or 0) <= LONGEST_WAIT
    TIME.now += LONGEST_WAIT
    assert len(mine.claim(here, 9, 9)) == 4


def test_a_rate_holds_beside_a_limit(here: Connection) -> None:
    backlog(here, {"a": 9})
    rate("tenant", rate=3, rate_per="hour", burst=3, max_running=2)
    mine = claimer(here)
    taken = mine.claim(here, 9, 9)
    assert len(taken) == 2
    settle(here, [Settlement(each.held, Completed(), None) for each in taken])
    for each in taken:
        mine.settled(each.tenant_id)
    assert len(mine.claim(here, 9, 9)) == 1
    assert mine.claim(here, 9, 9) == []


def test_the_rate_of_one_tenant_is_not_anothers(here: Connection) -> None:
    tenant = backlog(here, {"rated": 9, "free": 9})
    Tenant.objects.filter(slug="rated").update(rate=1, rate_per="hour", burst=2)
    taken = by_tenant([each for mine in [claimer(here)] for _ in range(4) for each in mine.claim(here, 9, 9)])
    assert taken == {tenant["rated"]: 2, tenant["free"]: 9}


def test_a_claim_writes_one_bucket_once(here: Connection) -> None:
    tenant = backlog(here, {"a": 9})["a"]
    rate("tenant", rate=1, rate_per="hour", burst=8)
    assert len(claimer(here).claim(here, 9, 9)) == 8
    (bucket,) = RateBucket.objects.all()
    assert (bucket.scope, bucket.key) == ("tenant", str(tenant))
    assert 0 <= bucket.tokens < 0.1


def test_without_a_rate_no_bucket_is_written(here: Connection) -> None:
    backlog(here, {"a": 9})
    rate("tenant", max_running=5)
    assert len(claimer(here).claim(here, 9, 9)) == 5
    assert not RateBucket.objects.exists()


def test_a_clock_that_went_back_takes_nothing_away(here: Connection) -> None:
    backlog(here, {"a": 9})
    rate("tenant", rate=60, rate_per="minute", burst=5)
    assert len(claimer(here).claim(here, 2, 2)) == 2
    pass_by(-3600)
    assert len(claimer(here).claim(here, 9, 9)) == 3
