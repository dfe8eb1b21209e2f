"""Tenants whose rows somebody has deleted by hand: their jobs run, and nobody who meets them stumbles."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.test import Client

from dispatch.admitter import Admitter
from dispatch.dispatcher import Dispatcher
from dispatch.holder import Holder
from dispatch.intake import Intake
from dispatch.janitor import Janitor
from dispatch.rollup import Rollups
from dispatch.ticker import Ticker
from jobs.clock import DatabaseClock
from jobs.models import Backlog, Job, Kind, Outcome, Tenant
from jobs.results import Completed
from tests.db.test_ticker import by_sql, define
from tests.factories import finish, process, schedule

pytestmark = pytest.mark.usefixtures("transactional_db")
Connection = psycopg.Connection[Any]
GONE = ("gone", "also gone")


@pytest.fixture
def jobs(connection: Connection) -> list[Job]:
    """Two of each tenant that is gone, one that is due and one that is not, and one of a tenant that is there."""
    Tenant.objects.create(slug="gone", max_running=1)
    made = [schedule(tenant=slug, queue="q", delay=-timedelta(seconds=1)) for slug in (*GONE, "there")]
    made += [schedule(tenant=slug, queue="q", delay=timedelta(hours=1)) for slug in GONE]
    by_sql(define(since=timedelta(minutes=5)), tenant_id=made[0].tenant_id)
    connection.execute("SET session_replication_role = replica")  # as whoever deletes by hand may do
    connection.execute("DELETE FROM jobs_tenant WHERE slug = ANY(%s)", [list(GONE)])
    connection.execute("RESET session_replication_role")
    return made


def test_every_loop_goes_on(connection: Connection, jobs: list[Job]) -> None:
    clock = DatabaseClock()
    for work in (Dispatcher(), Admitter(), Holder(), Ticker(), Janitor(), Rollups()):
        work.run_once(connection, clock.read(connection))
    names = set(Backlog.objects.filter(kind=Kind.TENANT).values_list("name", flat=True))
    assert names == {"there"}
    assert Backlog.objects.get(kind=Kind.QUEUE, name="q").waiting == 3


def test_their_jobs_are_claimed_and_settled(connection: Connection, jobs: list[Job]) -> None:
    clock = DatabaseClock()
    clock.read(connection)
    intake = Intake(["q"], process(connection), ["test.noop"], clock, suspects=False)
    intake.ready(connection)
    claims, missing = intake.claim(connection, "q", 10, 10)
    assert missing == []
    assert {each.held.job_id for each in claims} == {job.pk for job in jobs[:3]}
    for each in claims:
        finish(connection, each, Completed())
    assert Outcome.objects.count() == 3


@pytest.mark.parametrize("page", ["", "jobs/job/", "jobs/tenant/", "jobs/queue/"])
def test_the_console_shows_what_there_is(admin_client: Client, jobs: list[Job], page: str) -> None:
    assert admin_client.get(f"/admin/{page}", follow=True).status_code == 200


def test_their_jobs_can_be_looked_at_and_operated(
    admin_client: Client, connection: Connection, jobs: list[Job]
) -> None:
    for job in jobs:
        assert admin_client.get(f"/admin/jobs/job/{job.pk}/change/", follow=True).status_code == 200
        assert str(job)
        assert str(job.why())
    call_command("jobs", "why", str(jobs[0].pk))
    assert Job.objects.filter(pk=jobs[-1].pk).cancel().changed == 1


def test_who_schedules_for_the_name_again_has_a_new_tenant(connection: Connection, jobs: list[Job]) -> None:
    from jobs import tenants

    tenants.forget()  # within a minute
    assert schedule(tenant="gone").tenant_id != jobs[0].tenant_id
