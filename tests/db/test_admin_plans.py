"""What the pages cost: few statements whatever the rows, never a count of jobs, never a day outside the window."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from django.test import Client

from jobs.models import CronDefinition, Job, Queue, Tenant
from jobs.newjob import NewJob
from jobs.states import JobState
from tests.db.test_admin_tools import (
    BIG,
    FAILED,
    JOBS,
    MODELS,
    VIEW,
    day_names,
    days_of,
    leaves_visited,
    operator_with,
    page_of,
    statements,
)
from tests.db.test_console_pages import own
from tests.factories import Connection, claim, failed, finish, job_in, process, schedule

pytestmark = pytest.mark.django_db

LISTS = [*(f"/admin/jobs/{name}/" for name in MODELS), FAILED, f"{JOBS}?q=state:failed+type:test.noop"]
BUDGET = 8


@pytest.fixture
def operator(connection: Connection, steady_clock: None) -> Client:
    """Not a superuser: permissions cost statements as well. With the process's clock already read."""
    return operator_with(*VIEW, "retry_job", "cancel_job")


@pytest.fixture
def today() -> date:
    return datetime.now(UTC).date()


def grow(connection: Connection, rows: int) -> None:
    worker = process(connection)
    for _ in range(rows):
        finish(connection, claim(connection, schedule(tenant="acme"), worker), failed(final=True))
        process(connection)
    Job.objects.schedule_many([NewJob(job_type="test.echo", tenant="beta")] * rows)
    tenant = Tenant.objects.get(slug="acme")
    there = Queue.objects.count()
    for n in range(there, there + rows):
        Queue.objects.create(name=f"q{n}")
        Tenant.objects.create(slug=f"t{n}")
        CronDefinition.objects.create(
            name=f"c{n}", tenant=tenant, expression="0 1 * * *", job_type="test.noop"
        )


def test_a_page_needs_as_many_statements_for_40_rows_as_for_10(
    operator: Client, connection: Connection
) -> None:
    grow(connection, 10)
    small = {url: len(own(operator, url)) for url in LISTS}
    grow(connection, 30)
    large = {url: len(own(operator, url)) for url in LISTS}
    assert large == small
    assert max(large.values()) <= BUDGET


def test_a_filter_by_tenant_costs_one_statement_more(operator: Client) -> None:
    schedule(tenant="acme")
    url = f"{JOBS}?q=tenant:acme"
    assert len(own(operator, url)) == len(own(operator, JOBS)) + 1
    assert len(own(operator, url)) <= BUDGET


def test_the_page_of_a_job_stays_in_the_budget(operator: Client, connection: Connection) -> None:
    for state in JobState:
        job = job_in(state, connection)
        assert len(own(operator, page_of(job))) <= BUDGET


@pytest.mark.parametrize("url", LISTS)
def test_no_page_counts_jobs(operator: Client, connection: Connection, url: str) -> None:
    job_in(JobState.FAILED, connection)
    for sql in statements(operator, url):
        assert "COUNT(" not in sql or not any(f'"{table}"' in sql for table in BIG)


@pytest.mark.parametrize(
    "asked",
    ["", "?q=state:failed", "?q=state:scheduled", "?q=tenant:acme", "?q=type:test.noop", "?q=-state:queued"],
)
def test_the_list_visits_only_the_days_of_its_window(operator: Client, today: date, asked: str) -> None:
    schedule(tenant="acme")
    looks = [sql for sql in own(operator, JOBS + asked) if any(f'"{table}"' in sql for table in BIG)]
    assert "LIMIT 51" in looks[0]
    for sql in looks:
        assert days_of(leaves_visited(sql)) <= day_names(today, -1, 1)
    assert days_of(leaves_visited(looks[0])) or "queued" in asked


def test_a_later_page_visits_only_the_days_that_are_left(operator: Client, today: date) -> None:
    schedule()
    job = schedule()
    for sql in own(operator, f"{JOBS}?after={job.pk}"):
        if '"jobs_job"' in sql:
            assert days_of(leaves_visited(sql)) <= day_names(today, -1, 0)


def test_failed_jobs_are_looked_for_in_the_due_days_that_the_page_names(
    operator: Client, today: date
) -> None:
    (sql,) = [sql for sql in own(operator, FAILED) if '"jobs_outcome"' in sql]
    leaves = leaves_visited(sql)
    assert days_of(leaves) <= day_names(today, -8, 7)
    assert {leaf.partition("__")[0] for leaf in leaves} == {"jobs_outcome"}


def test_the_page_of_a_job_visits_its_day_alone(operator: Client, connection: Connection) -> None:
    job = job_in(JobState.FAILED, connection)
    for sql in statements(operator, page_of(job)):
        if any(f'"{table}"' in sql for table in BIG):
            assert days_of(leaves_visited(sql)) == {f"{job.due_at:%Y_%m_%d}"}
