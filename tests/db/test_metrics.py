"""Metrics: what Prometheus reads, for whom, and that nothing in it grows without end or tells of a tenant."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from dispatch.rollup import Rollups
from jobs import clock, holds
from jobs.clock import DatabaseClock
from jobs.console import metrics, remember
from jobs.leases import register
from jobs.models import Backlog, Kind, ProcessKind, Rollup, RollupProgress, Step
from jobs.search import guard
from jobs.states import JobState
from tests.db.test_admin_tools import operator_with
from tests.db.test_console_pages import own
from tests.factories import Connection, job_in, schedule

pytestmark = pytest.mark.django_db
URL = "/metrics"
TOKEN = "a-long-token"
SAMPLE = re.compile(r'^(punctual_\w+)(\{(\w+="([^"\\]|\\.)*",?)+\})? (\S+)$')


@pytest.fixture(autouse=True)
def _token(settings: Any) -> None:
    settings.SCHEDULER_METRICS_TOKEN = TOKEN
    remember.forget()


def scrape(client: Client) -> dict[str, float]:
    """Sample by sample; every line is one, or a comment before the samples of its family."""
    remember.forget()
    response = client.get(URL, headers={"Authorization": f"Bearer {TOKEN}"})
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/plain; version=0.0.4")
    assert response["Cache-Control"].startswith("max-age=0")
    found: dict[str, float] = {}
    family = ""
    for line in response.text.splitlines():
        if line.startswith("#"):
            family = line.split()[2]
            continue
        match = SAMPLE.match(line)
        assert match, line
        assert match[1].startswith(family)
        name = line.rpartition(" ")[0]
        assert name not in found
        found[name] = float(match[5])
    return found


def count(connection: Connection) -> None:
    Rollups().run_once(connection, DatabaseClock().read(connection))


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN, "Bearer \u00e9"]
)
def test_without_the_token_nothing_is_told(client: Client, header: str) -> None:
    response = client.get(URL, headers={"Authorization": header})
    assert response.status_code == 401
    assert "punctual" not in response.text


def test_an_empty_token_opens_nothing(client: Client, settings: Any) -> None:
    for unset in ("", None):
        settings.SCHEDULER_METRICS_TOKEN = unset
        for header in ("Bearer", "Bearer ", "Bearer None"):
            assert client.get(URL, headers={"Authorization": header}).status_code == 401


def test_a_user_needs_the_permission_and_every_tenant() -> None:
    assert operator_with("view_metrics").get(URL).status_code == 200
    assert operator_with("view_job").get(URL).status_code == 401
    assert operator_with("view_metrics", tenants=["acme"]).get(URL).status_code == 401


def test_it_only_reads(client: Client) -> None:
    assert client.post(URL, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 405


def test_an_empty_installation_has_metrics_as_well(client: Client) -> None:
    found = scrape(client)
    assert found["punctual_holds"] == 0
    assert "punctual_numbers_age_seconds" not in found


def test_it_tells_what_waits_runs_and_ended(client: Client, connection: Connection) -> None:
    schedule(queue="mail", tenant="zebra", group="zebra")
    job_in(JobState.RUNNING, connection, queue="slow")
    holds.hold("queue", "other")
    register(connection, ProcessKind.DISPATCHER)
    count(connection)
    found = scrape(client)
    assert found['punctual_jobs_waiting{queue="mail"}'] == 1
    assert found['punctual_jobs_running{queue="slow"}'] == 1
    assert found['punctual_jobs_oldest_seconds{queue="slow"}'] == 0
    assert found["punctual_holds"] == 1
    assert found['punctual_processes{kind="dispatcher",state="live"}'] == 1
    assert found["punctual_days_ready"] > 0
    assert found["punctual_numbers_age_seconds"] < 120
    assert not any("zebra" in name for name in found)


def rolled(kind: Kind, name: str, at: datetime, step: Step = Step.MINUTE, **values: Any) -> None:
    Rollup.objects.create(kind=kind, name=name, at=at, step=step, **values)


def test_counters_are_of_the_day_of_the_last_minute_and_count_none_twice(client: Client) -> None:
    day = datetime(2026, 11, 30, tzinfo=UTC)
    progress = RollupProgress.objects.create(
        first=day + timedelta(hours=2, minutes=5),
        second=day + timedelta(hours=1),
        hour=day + timedelta(hours=1),
    )
    kept: dict[str, Any] = {"completed": 10, "failed": 1, "due": 20}
    rolled(Kind.QUEUE, "q", day - timedelta(minutes=1), **kept)  # yesterday
    rolled(Kind.QUEUE, "q", day, Step.HOUR, **kept)
    rolled(Kind.QUEUE, "q", day + timedelta(minutes=7), **kept)  # in that hour already
    rolled(Kind.QUEUE, "q", day + timedelta(hours=1, minutes=7), **kept)
    rolled(Kind.QUEUE, "q", day + timedelta(hours=2, minutes=4), **kept)
    rolled(Kind.QUEUE, "q", day + timedelta(hours=2, minutes=5), **kept)  # not known yet
    found = scrape(client)
    assert found['punctual_queue_ended_total{queue="q",state="completed"}'] == 30
    assert found['punctual_queue_ended_total{queue="q",state="failed"}'] == 3
    assert found['punctual_queue_due_total{queue="q"}'] == 60
    progress.first = day  # at midnight the whole day before is told once more
    progress.save()
    assert scrape(client)['punctual_queue_due_total{queue="q"}'] == 20


def test_histograms_are_cumulative(client: Client) -> None:
    day = datetime(2026, 11, 30, tzinfo=UTC)
    RollupProgress.objects.create(first=day + timedelta(minutes=5), second=day, hour=day)
    for n in range(2):
        rolled(Kind.ALL, "", day + timedelta(minutes=n), late=[1, 0, 2], ran=[3], ran_seconds=1.5)
    found = scrape(client)
    assert found['punctual_late_seconds_bucket{le="0.005"}'] == 2
    assert found['punctual_late_seconds_bucket{le="0.01"}'] == 2
    assert found['punctual_late_seconds_bucket{le="0.02"}'] == 6
    assert found['punctual_late_seconds_bucket{le="+Inf"}'] == found["punctual_late_seconds_count"] == 6
    assert found["punctual_ran_seconds_sum"] == 3
    assert "punctual_late_seconds_sum" not in found


def test_names_are_escaped_and_bounded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "NAMES", 3)
    RollupProgress.objects.create(first=clock.now(), second=clock.now(), hour=clock.now())
    for name in ("a", 'b"\\\n} 1', "c", "d", "e"):
        Backlog.objects.create(kind=Kind.QUEUE, name=name, waiting=2)
    found = scrape(client)
    waiting = {name: value for name, value in found.items() if name.startswith("punctual_jobs_waiting")}
    assert waiting == {
        'punctual_jobs_waiting{queue="a"}': 2,
        'punctual_jobs_waiting{queue="b\\"\\\\\\n} 1"}': 2,
        'punctual_jobs_waiting{queue="c"}': 2,
        'punctual_jobs_waiting{queue="(others)"}': 4,
    }


def test_it_costs_the_same_for_many_names(client: Client, steady_clock: None) -> None:
    RollupProgress.objects.create(first=clock.now(), second=clock.now(), hour=clock.now())
    operator = operator_with("view_metrics")
    own(operator, URL)
    few = len(own(operator, URL))
    for n in range(30):
        Backlog.objects.create(kind=Kind.QUEUE, name=f"q{n}", waiting=2)
    assert len(own(operator, URL)) == few <= 12


def test_a_slow_database_is_a_503(
    client: Client, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "PATIENCE", timedelta(milliseconds=50))
    with connection.transaction():
        connection.execute("LOCK TABLE jobs_rollupprogress IN ACCESS EXCLUSIVE MODE")
        response = client.get(URL, headers={"Authorization": f"Bearer {TOKEN}"})
    assert response.status_code == 503
