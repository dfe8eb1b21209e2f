"""A server's clock that was set back, or a server with a slower clock that takes the place of another: what waits for a
time of the clock before does not wait for that."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg

from dispatch.janitor import Janitor
from dispatch.rollup import Rollups
from jobs import operations
from jobs.clock import DatabaseClock
from jobs.models import Operation, RateBucket, RollupProgress, Tenant
from tests.db.test_admin_tools import user_with
from tests.db.test_claim_fairness import backlog, claimer
from tests.db.test_operations import many
from tests.factories import server_time

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)


def upkeep(here: Connection) -> None:
    Janitor().run_once(here, DatabaseClock().read(here))


def test_ck_01_a_rate_brings_more_although_its_bucket_is_of_a_later_time(here: Connection) -> None:
    backlog(here, {"a": 9})
    Tenant.objects.update(rate=1, rate_per="second", burst=3)
    assert len(claimer(here).claim(here, 9, 9)) == 3
    RateBucket.objects.update(tokens=0, refilled_at=server_time(here) + HOUR)
    assert claimer(here).claim(here, 9, 9) == []
    upkeep(here)
    bucket = RateBucket.objects.get()
    assert (bucket.tokens, bucket.refilled_at <= server_time(here)) == (0, True)
    RateBucket.objects.update(refilled_at=bucket.refilled_at - timedelta(seconds=2))
    assert len(claimer(here).claim(here, 9, 9)) == 2


def test_ck_01_an_operation_goes_on_although_its_last_chunk_was_later(here: Connection) -> None:
    many(3, group="g")
    made = operations.submit(user_with("cancel_job", "bulk_job"), "cancel", "group:g due:today..+2d", "why")
    later = server_time(here) + HOUR
    Operation.objects.update(heartbeat_at=later, next_at=later)
    assert operations.run_chunk() is None
    upkeep(here)
    assert operations.run_chunk() == 3
    made.refresh_from_db()
    assert made.changed == 3


def test_ck_01_minutes_are_counted_although_later_ones_have_been(here: Connection) -> None:
    Rollups().run_once(here, server_time(here))
    later = server_time(here) + 9 * HOUR
    RollupProgress.objects.update(first=later, second=later, hour=later)
    upkeep(here)
    progress, now = RollupProgress.objects.get(), server_time(here)
    assert max(progress.first, progress.second, progress.hour) <= now
    assert now - progress.hour < HOUR
