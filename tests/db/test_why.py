"""Why a job waits: each reason in words, and the same answer as the claim's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import transaction
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.ids import new_id
from jobs.leases import Claimer, end
from jobs.models import Hold, Job, Queue, QueueEntry, RateBucket, Tenant, TenantQueueLimit
from jobs.registry import registry
from jobs.rules import each, ordinal
from jobs.states import JobState
from jobs.why import why
from tests.db.verbs import SITUATIONS, job_so
from tests.factories import DjangosConnection, come_due, process, schedule, server_time
from tests.searching import examples

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)


def codes(job: Job) -> list[str]:
    return [reason.code for reason in why(job.pk).reasons if reason.blocks]


def _last() -> Any:
    """The last one in line: two of one millisecond come in the order of their ids."""
    return QueueEntry.objects.order_by("run_at", "job_id").values_list("job_id", flat=True).last()


def due(here: Connection, **options: Any) -> Job:
    job = schedule(**{"tenant": "acme", **options})
    come_due(here)
    return job


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_state_has_its_reason(here: Connection, situation: str) -> None:
    job = job_so(situation, here)
    expected = {
        "scheduled": ["not_due"],
        "queued": [],
        "running": ["running"],
        "retryable": ["backoff"],
        "snoozed": ["snoozed"],
    }.get(situation, [situation])
    process(here)
    come_due(here)
    found = why(job.pk)
    assert [reason.code for reason in found.reasons if reason.blocks] == expected
    assert found.runnable is (situation == "queued")
    assert str(job.why()) == str(found)


def test_who_is_at_its_limit_is_told_where_it_stands_in_line(here: Connection) -> None:
    worker = process(here)
    for _ in range(5):
        schedule(tenant="acme")
    come_due(here)
    job = Job.objects.get(pk=_last())
    Tenant.objects.update(max_running=2)
    assert len(Claimer("test.noop", worker, registry.names()).claim(here, 9, 9)) == 2
    found = why(job.pk)
    assert found.headline.text == "tenant acme is at its limit: 2 of 2, 3rd in line"
    assert [reason.code for reason in found.reasons] == ["tenant_limit", "in_line"]


def test_every_limit_that_is_reached_is_told(here: Connection) -> None:
    process(here)
    job = due(here)
    Tenant.objects.update(max_running=0, rate=0)
    Queue.objects.create(name="test.noop", max_running=0, rate=0)
    TenantQueueLimit.objects.create(tenant_id=job.tenant_id, queue="test.noop", max_running=0)
    assert codes(job) == ["tenant_limit", "tenant_queue_limit", "tenant_rate", "queue_limit", "queue_rate"]
    assert "rate of 0: none may start" in str(why(job.pk))


def test_a_rate_says_when_the_next_may_start(here: Connection) -> None:
    worker = process(here)
    schedule(tenant="acme")
    schedule(tenant="acme")
    come_due(here)
    job = Job.objects.get(pk=_last())
    Tenant.objects.update(rate=30, rate_per="minute", burst=1)
    assert len(Claimer("test.noop", worker, registry.names()).claim(here, 9, 9)) == 1
    reason = why(job.pk).headline
    assert reason.code == "tenant_rate"
    assert "acme is at its rate, 30 a minute" in reason.text
    assert reason.until is not None
    assert timedelta() < reason.until - server_time(here) <= timedelta(seconds=2)


@pytest.mark.parametrize(
    ("scope", "key"),
    [("all", ""), ("tenant", "acme"), ("queue", "test.noop")],
    ids=["all", "tenant", "queue"],
)
def test_a_hold_says_who_since_when_until_and_why(here: Connection, scope: str, key: str) -> None:
    process(here)
    job = due(here)
    now = server_time(here)
    Hold.objects.create(
        scope=scope, key=key, by="ada", reason="mail provider is down", since=now - HOUR, until=now + HOUR
    )
    reason = why(job.pk).headline
    what = "everything is" if scope == "all" else f"{scope} {key} is"
    assert (reason.code, reason.until) == (f"paused_{scope}", now + HOUR)
    assert reason.text == (
        f"{what} paused since {now - HOUR:%Y-%m-%d %H:%M:%S} UTC by ada until {now + HOUR:%Y-%m-%d %H:%M:%S} UTC: "
        "mail provider is down"
    )


@pytest.mark.parametrize(("scope", "key"), [("type", "test.noop"), ("group", "spring")])
def test_what_is_parked_for_a_hold_names_it(here: Connection, scope: str, key: str) -> None:
    process(here)
    job = due(here, group="spring")
    Hold.objects.create(scope=scope, key=key, by="ada", since=server_time(here) - HOUR)
    QueueEntry.objects.update(parked="hold")
    reason = why(job.pk).headline
    assert reason.code == f"held_{scope}"
    assert f"{scope} {key} is paused since" in reason.text
    Hold.objects.all().delete()
    assert codes(job) == ["held"]
    assert reason.text.endswith("by ada")


def test_what_waits_for_its_key_names_who_has_it(here: Connection) -> None:
    process(here)
    holder, job = due(here), due(here)
    QueueEntry.objects.update(concurrency_key="account 7")
    QueueEntry.objects.filter(job_id=job.pk).update(parked="key")
    reason = why(job.pk).headline
    assert reason.code == "concurrency_key"
    assert reason.text == f"its concurrency key account 7 is taken by {holder.pk}"


def test_a_type_that_nobody_knows_and_a_queue_that_nobody_serves_are_told(here: Connection) -> None:
    job = due(here)
    assert codes(job) == ["no_worker_for_type"]
    here.execute(
        "INSERT INTO jobs_process (kind, host, pid, queues, types, lease_expires_at) "
        "VALUES ('worker', 'h', 1, ARRAY['other'], ARRAY['test.noop'], clock_timestamp() + interval '1 h')"
    )
    assert codes(job) == ["no_worker_for_queue"]
    process(here)
    assert codes(job) == []


def test_a_timer_that_nobody_dispatched_is_told(here: Connection) -> None:
    job = schedule(delay=timedelta(days=1))
    here.execute("UPDATE jobs_timer SET due_at = due_at")  # it is there
    assert codes(job) == ["not_due"]


def test_whose_worker_is_gone_waits_for_the_rescuer(here: Connection) -> None:
    worker = process(here)
    job = due(here)
    assert len(Claimer("test.noop", worker, registry.names()).claim(here, 9, 9)) == 1
    assert codes(job) == ["running"]
    end(here, [worker])
    here.execute("UPDATE jobs_process SET lease_expires_at = lease_expires_at - interval '1 h'")
    assert codes(job) == ["lease_expired"]


def test_a_drain_that_is_not_at_this_one_yet_is_told(here: Connection) -> None:
    process(here)
    jobs = [due(here)]
    now = server_time(here)
    Hold.objects.create(scope="queue", key="test.noop", since=now - HOUR, until=now - HOUR / 2, drain=1)
    RateBucket.objects.create(scope="hold", key=str(Hold.objects.get().pk), tokens=0, refilled_at=now + HOUR)
    assert codes(jobs[0]) == ["draining"]


def test_a_job_that_is_none_is_not_said_to_move(here: Connection) -> None:
    """Nobody would be told otherwise that its day was dropped."""
    job = due(here)
    assert why(new_id(job.due_at)).headline.code == "unknown"
    here.execute("DELETE FROM jobs_queueentry")
    assert why(job.pk).headline.code == "in_motion"


def test_the_jobs_page_says_why(here: Connection, admin_client: Client) -> None:
    process(here)
    job = due(here)
    Tenant.objects.update(max_running=0)
    page = admin_client.get(f"/admin/jobs/job/{job.pk}/change/", follow=True).text
    assert "is at its limit: 0 of 0, 1st in line" in page


def test_words() -> None:
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 214, 1003)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "214th", "1,003rd",
    ]  # fmt: skip
    assert [each(rate) for rate in (2.0, 0.5, 1 / 60, 5 / 3600)] == [
        "2 a second",
        "30 a minute",
        "1 a minute",
        "5 an hour",
    ]


# the same answer as the claim's

LIMIT = st.sampled_from([None, None, 0, 1, 2, 3, 50])
RATE = st.sampled_from([None, None, None, 0, 2, 50])
HOLDS = st.sampled_from(
    [None, None, None, "all", "tenant", "other tenant", "queue", "type", "group", "other type"]
)
ENTRY = st.fixed_dictionaries(
    {
        "priority": st.sampled_from([0, 0, 5]),
        "change": st.sampled_from(
            [
                {},
                {},
                {},
                {"parked": "type"},
                {"parked": "hold"},
                {"later": True},
                {"claimed": True},
                {"crashes": 1},
            ]
        ),
    }
)
WORLDS = st.fixed_dictionaries(
    {
        "entries": st.lists(ENTRY, min_size=1, max_size=6),
        "max_running": LIMIT,
        "max_here": LIMIT,
        "rate": RATE,
        "queue_max_running": LIMIT,
        "queue_rate": RATE,
        "hold": HOLDS,
        "over": st.sampled_from([False, False, True]),
        "drain": st.sampled_from([None, 1, 50]),
        "temporary": st.sampled_from([None, 0, 4]),
    }
)


@settings(
    max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(world=WORLDS)
def test_it_says_runnable_exactly_when_a_claim_takes_it(db: None, world: dict[str, Any]) -> None:
    with transaction.atomic():
        here: Any = DjangosConnection()
        here.execute(
            "SELECT set_config('punctual.tenants', '', true), set_config('punctual.queue', '', true)"
        )
        _check(here, world)
        transaction.set_rollback(True)


def _check(here: Connection, world: dict[str, Any]) -> None:
    worker = process(here)
    jobs = [schedule(tenant="acme", group="spring", priority=entry["priority"]) for entry in world["entries"]]
    come_due(here)
    now = server_time(here)
    for job, entry in zip(jobs, world["entries"], strict=True):
        change = dict(entry["change"])
        if change.pop("later", False):
            change["run_at"] = now + HOUR
        if change.pop("claimed", False):
            change |= {"lease_token": job.pk, "process_id": worker, "claim_no": 1}
        QueueEntry.objects.filter(job_id=job.pk).update(**change) if change else None
    tenant = Tenant.objects.get(slug="acme")
    Tenant.objects.update(
        max_running=world["max_running"],
        **_rate(world["rate"]),
        temporary_max_running=world["temporary"],
        temporary_until=None if world["temporary"] is None else now + HOUR,
    )
    if world["max_here"] is not None:
        TenantQueueLimit.objects.create(tenant=tenant, queue="test.noop", max_running=world["max_here"])
    if world["queue_max_running"] is not None or world["queue_rate"] is not None:
        Queue.objects.create(
            name="test.noop", max_running=world["queue_max_running"], **_rate(world["queue_rate"])
        )
    if world["hold"]:
        key = {"all": "", "tenant": "acme", "queue": "test.noop", "type": "test.noop", "group": "spring"}.get(
            world["hold"], "another"
        )
        Hold.objects.create(
            scope=world["hold"].rpartition(" ")[2],
            key=key,
            since=now - HOUR,
            until=now - HOUR / 2 if world["over"] else None,
            drain=world["drain"],
        )
    said = {job.pk: job.why() for job in jobs}
    mine = Claimer("test.noop", worker, registry.names())
    taken = {each.held.job_id for each in mine.claim(here, 100, 100)}
    for job in jobs:
        assert said[job.pk].runnable is (job.pk in taken), (str(said[job.pk]), said[job.pk].reasons)
    assert all(said[job.pk].runnable or said[job.pk].headline.blocks for job in jobs)
    assert all(QueueEntry.objects.get(job_id=pk).state(now) is JobState.RUNNING for pk in taken)


def _rate(most: int | None) -> dict[str, Any]:
    """So slow that no token comes while we ask."""
    return {"rate": most, "rate_per": "hour", "burst": most or None}
