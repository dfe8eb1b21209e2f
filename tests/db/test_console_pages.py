"""The pages that are no list of rows: what they say, what they cost, and what they do when the database is slow."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from dispatch.rollup import Rollups
from jobs import clock
from jobs.clock import DatabaseClock
from jobs.console import health, remember
from jobs.leases import end, register
from jobs.models import CronDefinition, Hold, Job, ProcessKind, Tenant
from jobs.newjob import NewJob
from jobs.results import Failed
from jobs.search import guard
from jobs.sql import load
from jobs.states import JobState
from jobs.text import ErrorText
from tests.db.test_admin_tools import (
    VIEW,
    day_names,
    days_of,
    leaves_visited,
    operator_with,
    statements,
)
from tests.factories import Connection, claim, failed, finish, job_in, process, schedule

BASE = "/admin/jobs"
PAGES = {
    "overview": f"{BASE}/",
    "errors": f"{BASE}/job/errors/",
    "forecast": f"{BASE}/job/forecast/",
    "types": f"{BASE}/job/types/",
    "type": f"{BASE}/job/types/one/?name=test.noop",
    "queues": f"{BASE}/queue/",
    "queue": f"{BASE}/queue/one/?name=test.noop",
    "workers": f"{BASE}/process/workers/",
    "dispatchers": f"{BASE}/process/dispatchers/",
    "health": f"{BASE}/job/health/",
}
ALL = PAGES | {"waiting": f"{BASE}/job/waiting/"}
"""Also what asks the rules of the claim about each kind of job."""
AUTH = re.compile(
    r'"(django_session|auth_\w+|jobs_preference)"|^(BEGIN|COMMIT|SAVEPOINT|RELEASE)|set_config|pg_try_advisory'
)


@pytest.fixture
def operator(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> Client:
    clock.now()
    monkeypatch.setattr(clock, "REFRESH", float("inf"))  # the look at the database's clock is not a page's
    return operator_with(*VIEW, "view_hold", "every_tenant")


def own(client: Client, url: str) -> list[str]:
    """The page's own statements, without who asks and the patience that is set."""
    remember.forget()
    return [sql for sql in statements(client, url) if not AUTH.search(sql)]


def grow(connection: Connection, rows: int) -> None:
    worker = process(connection)
    for n in range(rows):
        job = schedule("test.noop", tenant=f"t{n}", queue=f"q{n}")
        text = ErrorText("ValueError", f"no {'x' * n}", "", f"{n:016x}")
        finish(connection, claim(connection, job, worker), Failed(text, timedelta(), final=True))
        schedule("test.noop", tenant=f"t{n}", queue=f"q{n}")
        register(connection, ProcessKind.WORKER, queues=[f"q{n}"], types=["test.noop"])
        register(connection, ProcessKind.DISPATCHER)
        CronDefinition.objects.create(
            name=f"c{CronDefinition.objects.count()}",
            tenant=Tenant.objects.get(slug=f"t{n}"),
            expression="*/5 * * * *",
            job_type="test.noop",
        )
    Rollups().run_once(connection, DatabaseClock().read(connection))


def test_a_page_costs_as_many_statements_for_40_rows_as_for_10(
    operator: Client, connection: Connection
) -> None:
    grow(connection, 10)
    small = {name: len(own(operator, url)) for name, url in PAGES.items()}
    grow(connection, 40)
    large = {name: len(own(operator, url)) for name, url in PAGES.items()}
    assert large == small


def test_a_second_look_at_the_overview_costs_next_to_nothing(operator: Client) -> None:
    own(operator, PAGES["overview"])
    again = [sql for sql in statements(operator, PAGES["overview"]) if not AUTH.search(sql)]
    assert again == []


@pytest.mark.parametrize("name", ALL)
def test_no_page_counts_jobs_or_leaves_its_days(operator: Client, connection: Connection, name: str) -> None:
    job_in(JobState.FAILED, connection)
    for sql in own(operator, ALL[name]):
        if not re.search(r"\bjobs_(job|timer|outcome|attempt)\b", sql) or "pg_class" in sql:
            continue
        assert "LIMIT" in sql
        assert days_of(leaves_visited(sql)) <= day_names(datetime.now(UTC).date(), -31, 1)


@pytest.mark.parametrize("name", ALL)
def test_a_database_that_is_slow_is_told_and_the_page_stays(
    operator: Client, connection: Connection, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(guard, "PATIENCE", timedelta(milliseconds=50))
    remember.forget()
    with connection.transaction():
        for table in (
            "jobs_outcome",
            "jobs_queueentry",
            "jobs_process",
            "jobs_rollupprogress",
            "jobs_rollup",
        ):
            connection.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        page = operator.get(ALL[name])
    assert page.status_code == 200
    if name != "health":  # it reads none of these
        assert "and was stopped" in page.text
        assert "Try again" in page.text
    assert operator.get(ALL[name]).status_code == 200


def test_the_part_that_refreshes_is_a_part_and_not_sent_twice(
    operator: Client, connection: Connection
) -> None:
    schedule()
    url = f"{BASE}/job/types/?_live=1"
    part = operator.get(url)
    assert "<html" not in part.text
    assert "test.noop" in part.text
    again = operator.get(url, headers={"If-None-Match": part["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert operator.get(url, headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize("name", ALL)
def test_pages_answer_to_get_alone(operator: Client, name: str) -> None:
    if name != "overview":
        assert operator.post(ALL[name]).status_code == 405


def test_what_the_server_does_not_tell_is_unknown_and_the_rest_stays(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember.forget()

    def broken(name: Any) -> Any:
        return "SELECT 1 / 0" if name == "console/server" else load(name)

    monkeypatch.setattr(health, "load", broken)
    page = operator.get(ALL["health"])
    assert page.status_code == 200
    assert "It could not be asked: division by zero" in page.text
    assert page.context["lines"]
    remember.forget()


def problems(client: Client) -> str:
    remember.forget()
    found = re.search(r'<ul class="problems".*?</ul>', client.get(PAGES["overview"]).text, re.DOTALL)
    return found[0] if found else ""


def test_the_days_that_are_ready_are_those_of_the_plan(operator: Client) -> None:
    remember.forget()
    assert health.ready_days() == operator.get(PAGES["health"]).context["plan"].ready > 0


def test_the_overview_of_an_empty_installation_leads_to_the_first_job(operator: Client) -> None:
    page = operator.get(PAGES["overview"]).text
    assert "Three steps to the first job" in page
    assert "Nothing has been scheduled yet." in page


def test_a_dead_fleet_is_an_alarm(operator: Client, connection: Connection) -> None:
    schedule()
    told = problems(operator)
    assert "No dispatcher is alive" in told
    assert "No worker is alive; 1 job is due" in told
    assert "no worker serves it" in told


def test_all_is_well_with_a_fleet_that_keeps_up(operator: Client, connection: Connection) -> None:
    register(connection, ProcessKind.DISPATCHER)
    register(connection, ProcessKind.WORKER, queues=["test.noop"], types=["test.noop"])
    Rollups().run_once(connection, DatabaseClock().read(connection))
    job_in(JobState.COMPLETED, connection)
    assert problems(operator) == ""
    assert "Everything is on time." in operator.get(PAGES["overview"]).text


def test_what_burns_is_on_top(operator: Client, connection: Connection) -> None:
    dispatcher = register(connection, ProcessKind.DISPATCHER, lease=-timedelta(seconds=1))
    grow(connection, 2)
    Tenant.objects.filter(slug="t0").update(max_running=0)
    connection.execute(
        "UPDATE jobs_queueentry SET run_at = run_at - interval '10 minutes' WHERE queue = 'q1'"
    )
    told = problems(operator)
    assert "Queue q1 is late: its oldest job has waited 10 min" in told
    assert "Tenant t0 may run no job" in told
    assert "2 jobs failed in the last hour, in 2 ways" in told
    assert "1 process was lost" in told
    assert told.index("late") < told.index("failed in the last hour")
    end(connection, [dispatcher])


def test_failures_of_one_kind_are_one_line(operator: Client, connection: Connection) -> None:
    worker = process(connection)
    for n in range(5):
        text = ErrorText("ValueError", f"order {n} is gone", "", "00000000000000aa")
        finish(
            connection,
            claim(connection, schedule(tenant="acme"), worker),
            Failed(text, timedelta(), final=True),
        )
    finish(connection, claim(connection, schedule("test.echo"), worker), failed(final=True))
    page = operator.get(PAGES["errors"])
    cards = page.context["cards"]
    assert [card.group.count for card in cards] == [5, 1]
    group, trend, line = cards[0].group, cards[0].trend, cards[0].line
    assert (group.job_type, group.tenant) == ("test.noop", "acme")
    assert "order &lt;n&gt; is gone" in page.text
    assert sum(group.buckets) == 5
    assert len(trend.bars) >= 1
    assert line == "state:failed error:00000000000000aa finished:last-24h"


def test_failures_without_a_fingerprint_are_one_when_their_words_are(
    operator: Client, connection: Connection
) -> None:
    worker = process(connection)
    for _ in range(3):
        finish(connection, claim(connection, schedule(), worker), failed(final=True))
    connection.execute("UPDATE jobs_outcome SET error_fingerprint = NULL, error = 'order ' || random()")
    page = operator.get(PAGES["errors"])
    assert [card.group.count for card in page.context["cards"]] == [3]


def test_what_waits_for_another_attempt_is_told_with_its_error(
    operator: Client, connection: Connection
) -> None:
    job_in(JobState.RETRYABLE, connection)
    page = operator.get(PAGES["errors"])
    (line,) = page.context["retrying"]
    assert (line.job_type, line.count, line.message) == ("test.noop", 1, "no")
    assert page.context["cards"] == []


def test_the_forecast_adds_what_cron_will_fire(operator: Client, connection: Connection) -> None:
    tenant = schedule(delay=timedelta(minutes=10)).tenant
    CronDefinition.objects.create(name="often", tenant=tenant, expression="*/5 * * * *", job_type="test.noop")
    Rollups().run_once(connection, DatabaseClock().read(connection))
    page = operator.get(PAGES["forecast"])
    found = page.context["forecast"]
    assert found.total == 1 + found.fires
    assert 11 <= found.fires <= 12
    assert [(share.name, share.fires) for share in found.crons] == [("often", found.fires)]
    assert page.context["tops"][0].lines == [("test.noop", 1)]


def test_a_forecast_that_nobody_counted_says_so(operator: Client, connection: Connection) -> None:
    schedule(delay=timedelta(minutes=10))
    assert "have not been counted yet" in operator.get(PAGES["forecast"]).text


def test_a_queue_with_jobs_and_no_worker_is_red(operator: Client, connection: Connection) -> None:
    schedule(queue="lonely")
    page = operator.get(f"{BASE}/queue/one/", {"name": "lonely"})
    assert "no worker serves this queue" in page.text
    assert "no worker" in operator.get(PAGES["queues"]).text


def test_queues_are_paged_by_name(operator: Client, connection: Connection) -> None:
    Job.objects.schedule_many([NewJob(job_type="test.noop", queue=f"n{n:03}") for n in range(130)])
    first = operator.get(PAGES["queues"])
    assert len(first.context["lines"]) == 100
    second = operator.get(PAGES["queues"], {"from": first.context["following"]})
    names = [line.name for page in (first, second) for line, _ in page.context["lines"]]
    assert names == sorted(names)
    assert set(names) >= {f"n{n:03}" for n in range(130)}
    assert second.context["following"] is None


def test_counts_of_waiting_jobs_stop_at_the_cap(
    operator: Client, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.console.queues.CAP", 5)
    Job.objects.schedule_many([NewJob(job_type="test.noop")] * 8)
    assert "5+" in operator.get(PAGES["queue"]).text


def test_a_type_that_no_code_knows_is_an_orphan(operator: Client, connection: Connection) -> None:
    register(connection, ProcessKind.WORKER, queues=["x"], types=["gone.type"])
    assert "not in this code" in operator.get(PAGES["types"]).text
    assert "an orphan" in operator.get(f"{BASE}/job/types/one/", {"name": "gone.type"}).text


def test_parked_jobs_are_told_by_type(operator: Client, connection: Connection) -> None:
    schedule()
    connection.execute("UPDATE jobs_queueentry SET parked = 'type'")
    page = operator.get(PAGES["type"])
    assert "1 job of this type parked" in page.text
    assert "1 job of type test.noop parked: no live worker knows it" in problems(operator)
    connection.execute("UPDATE jobs_queueentry SET parked = 'hold'")
    assert "parked" not in problems(operator)
    remember.forget()
    assert not operator.get(PAGES["type"]).context["line"].parked


def test_the_latest_runs_of_a_type_are_timed(operator: Client, connection: Connection) -> None:
    worker = process(connection)
    for _ in range(4):
        from jobs.results import Completed

        finish(connection, claim(connection, schedule(), worker), Completed("{}"))
    connection.execute(
        "UPDATE jobs_outcome SET started_at = due_at + interval '2 s', finished_at = due_at + interval '5 s'"
    )
    connection.execute("UPDATE jobs_job SET created_at = due_at")
    runs = operator.get(PAGES["type"]).context["runs"]
    assert runs.took == (3.0, 3.0)
    assert runs.late == (2.0, 2.0)


def test_workers_stand_below_their_supervisors(operator: Client, connection: Connection) -> None:
    head = register(connection, ProcessKind.SUPERVISOR)
    child = register(connection, ProcessKind.WORKER, parent_id=head)
    alone = register(connection, ProcessKind.WORKER)
    lost = register(connection, ProcessKind.WORKER, lease=-timedelta(seconds=1))
    page = operator.get(PAGES["workers"])
    groups = [(line and line.pk, [each.pk for each in lines]) for line, lines in page.context["groups"]]
    assert groups == [(head, [child]), (None, [alone])]
    assert [line.pk for line in page.context["lost"]] == [lost]


def test_a_dispatcher_that_is_behind_is_told_by_how_much(operator: Client, connection: Connection) -> None:
    register(connection, ProcessKind.DISPATCHER)
    job = schedule(delay=timedelta(days=1))
    due = DatabaseClock().read(connection) - timedelta(minutes=2)
    day = f"{due:%Y_%m_%d}"
    connection.execute(
        f"INSERT INTO jobs_timer__{day} (job_id, due_at, tenant_id, queue, job_type, priority, max_attempts) "
        "SELECT gen_random_uuid(), %s, tenant_id, queue, job_type, priority, max_attempts FROM jobs_timer WHERE job_id = %s",
        [due, job.pk],
    )
    page = operator.get(PAGES["dispatchers"])
    assert timedelta(minutes=2) <= page.context["lag"] < timedelta(minutes=3)
    assert page.context["is_behind"]


def test_health_shows_the_days_and_what_will_become_of_them(operator: Client, connection: Connection) -> None:
    page = operator.get(PAGES["health"])
    checks = {check.name: check.state for check in page.context["checks"]}
    assert checks["Days ahead"] == "ok"
    assert {"Retention", "Long transactions", "Wraparound", "Connections", "Vacuum"} <= set(checks)
    today = [line for line in page.context["lines"] if line.when == "today"]
    assert len(today) == 1
    assert page.context["expiries"]
    assert any(name == "lease" for name, _, _ in page.context["settings"])


def test_what_is_held_is_on_every_page(operator: Client, connection: Connection) -> None:
    Hold.objects.create(scope="tenant", key="acme", reason="unpaid", by="ada")
    for url in (*ALL.values(), f"{BASE}/job/", f"{BASE}/crondefinition/add/"):
        remember.forget()
        page = operator.get(url)
        if page.status_code == 200:
            text = page.text
            assert "Tenant acme held" in text, url
            assert "unpaid" in text


def test_the_sections_are_those_that_the_operator_may_see(connection: Connection) -> None:
    page = operator_with("view_tenant").get("/admin/jobs/tenant/").text
    nav = re.search(r'<nav class="console-sections".*?</nav>', page, re.DOTALL)
    assert nav
    assert "Tenants" in nav[0]
    assert "Errors" not in nav[0]
    assert "console-search" not in page
