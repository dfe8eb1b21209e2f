"""Faults other schedulers had, by the ids of the collection of cases (themes SE and MI): what ticks leave in the tables."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg
from django.db import transaction
from django.db.models import Sum
from django.test import Client

from jobs import clock
from jobs.models import CronDefinition, CronTick, Job
from jobs.reconcile import reconcile
from jobs.tenants import tenant_ids
from tests.db.test_ticker import MINUTE, by_sql, define, slots, soon, tick

Connection = psycopg.Connection[Any]
HOUR = timedelta(hours=1)


def test_se_01_a_daily_job_moved_to_a_later_hour_does_not_fire_at_once(here: Connection) -> None:
    now = clock.now()
    before, after = now + 70 * MINUTE, now + 220 * MINUTE
    definition = define(expression=f"{before.minute} {before.hour} * * *", since=timedelta(days=1, hours=1))
    tick(here)
    fired = slots(definition)
    by_sql(definition, expression=f"{after.minute} {after.hour} * * *")
    edited = clock.now()
    for minutes in range(6):
        tick(here, edited + minutes * MINUTE)
    assert slots(definition) == fired
    definition.refresh_from_db()
    assert definition.next_slot == after.replace(second=0, microsecond=0)
    assert reconcile(now - timedelta(days=2), now=edited + 5 * MINUTE).breaches == []


def test_se_03_a_definition_made_anew_under_its_name_follows_the_new_rule_at_once(here: Connection) -> None:
    old = define("k", expression=soon())
    tick(here)
    ahead = slots(old)
    with transaction.atomic():
        old_id = old.pk
        old.delete()
        new = define("k", expression="", every=10 * MINUTE, anchor_at=clock.now() + 1.5 * MINUTE)
    now = clock.now()
    tick(here, now)
    assert list(CronTick.objects.filter(definition_id=old_id).values_list("slot", "outcome")) == [
        (slot, "replaced") for slot in ahead
    ]
    assert slots(new) == [new.anchor_at]
    assert reconcile(now - HOUR, now=now + MINUTE).breaches == []


def test_se_05_equal_rules_of_two_owners_are_two_definitions_with_a_job_each(here: Connection) -> None:
    tenants, rule = tenant_ids(["acme", "beta"]), soon()
    now = clock.now()
    for slug, tenant_id in tenants.items():
        CronDefinition.objects.create(
            name="report",
            tenant_id=tenant_id,
            expression=rule,
            job_type="test.echo",
            payload={"value": slug},
            last_slot=now,
            revised_at=now,
        )
    tick(here)
    jobs = Job.objects.filter(cron_id__isnull=False)
    assert {(job.tenant.slug, job.payload["value"]) for job in jobs} == {("acme", "acme"), ("beta", "beta")}
    assert len({job.slot for job in jobs}) == 1
    assert CronTick.objects.count() == jobs.count() == 2


def test_mi_05_what_did_not_run_is_counted_by_definition_and_reason_and_shown(
    admin_client: Client, here: Connection
) -> None:
    """By the catch-up window, by its limit, by overlap, by a pause."""
    now = clock.now().replace(second=30, microsecond=0) - 2 * MINUTE
    window = define("window", last_slot=now - 10 * MINUTE, catchup_window=4 * MINUTE)
    limit = define("limit", last_slot=now - 10 * MINUTE, misfire="run_all", catchup_limit=3)
    overlap = define("overlap", last_slot=now - 3 * MINUTE, overlap="skip", misfire_grace=HOUR)
    paused = define("paused", last_slot=now - 10 * MINUTE, enabled=False)
    tick(here, now)
    by_sql(paused, enabled=True)
    tick(here, now)
    told = Counter[tuple[int, str, str]]()
    rows = CronTick.objects.filter(slot__lte=now).exclude(outcome__in=["fired", "late"])
    for row in rows.values("definition_id", "outcome", "reason").annotate(slots=Sum("slots")):
        told[row["definition_id"], row["outcome"], row["reason"]] += row["slots"]
    assert told.pop((paused.pk, "skipped", "paused")) >= 10  # and those until it was enabled
    assert told == {
        (window.pk, "missed", "older than the catch-up window"): 6,
        (window.pk, "merged", "a later slot was due as well"): 1,
        (window.pk, "merged", "merged into one late run"): 2,
        (limit.pk, "missed", "over the catch-up limit"): 6,
        (overlap.pk, "skipped", "overlap: an earlier run has not ended"): 2,
    }
    for definition, reason in (
        (window, "older than the catch-up window"),
        (limit, "over the catch-up limit"),
    ):
        page = admin_client.get(f"/admin/jobs/crondefinition/{definition.pk}/change/").text
        assert "and 5 more" in page
        assert reason in page
