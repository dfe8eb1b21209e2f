"""Dropping days: never with an unfinished job, and never half. Each test has an old day of its own."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import psycopg
import pytest

from jobs.models import Job
from jobs.partitions import PARENTS, expire, read_days
from tests.factories import claim, failed, finish, process
from tests.schema.days import WAITING_ENTRY, ended, exists, expires, interject, waiting

pytestmark = pytest.mark.usefixtures("transactional_db")
Connection = psycopg.Connection[Any]


def test_a_day_is_dropped_when_it_is_past_the_retention_and_all_its_jobs_have_ended(
    connection: Connection, old: date
) -> None:
    job = ended(connection, old)
    assert old not in expire(expires(old) - timedelta(seconds=1)).dropped
    assert Job.objects.filter(pk=job.pk).exists()
    assert old in expire(expires(old)).dropped
    assert not exists(connection, old)
    assert not Job.objects.filter(pk=job.pk).exists()


@pytest.mark.parametrize("place", ["entry", "retrying entry", "timer"])
def test_a_day_with_an_unfinished_job_stays(connection: Connection, old: date, place: str) -> None:
    job = waiting(old)
    if place == "timer":
        connection.execute(
            "WITH gone AS (DELETE FROM jobs_queueentry RETURNING *) INSERT INTO jobs_timer (job_id, due_at, "
            "tenant_id, queue, job_type, priority, max_attempts) SELECT job_id, due_at, tenant_id, queue, job_type, "
            "priority, max_attempts FROM gone"
        )
    elif place == "retrying entry":
        finish(connection, claim(connection, job, process(connection)), failed())
    report = expire(expires(old))
    scheduled, queued = (1, 0) if place == "timer" else (0, 1)
    assert report.kept[old] == f"{scheduled} scheduled and {queued} queued jobs have not ended"
    assert read_days(connection)[old].complete
    assert Job.objects.filter(pk=job.pk).exists()


def test_a_job_that_comes_back_while_its_day_is_taken_apart_is_seen_by_the_second_look(
    connection: Connection, old: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ended(connection, old)
    interject(monkeypatch, PARENTS[-1], lambda: connection.execute(WAITING_ENTRY, [job.id, job.due_at]))
    report = expire(expires(old))
    assert old in report.kept
    assert old not in report.dropped
    assert read_days(connection)[old].complete
    assert Job.objects.filter(pk=job.pk).exists()


def test_retry_finds_nothing_once_the_outcome_is_detached_and_the_job_stays_ended(
    connection: Connection, old: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ended(connection, old)
    reports = []
    interject(monkeypatch, "jobs_outcome", lambda: reports.append(Job.objects.filter(pk=job.pk).retry()))
    assert old in expire(expires(old)).dropped
    assert [report.changed for report in reports] == [0]
    (entries,) = connection.execute("SELECT count(*) FROM jobs_queueentry").fetchone() or (None,)
    assert entries == 0


@pytest.mark.parametrize("parent", PARENTS)
def test_what_a_crash_left_half_done_is_ended_by_the_next_round(
    connection: Connection, old: date, monkeypatch: pytest.MonkeyPatch, parent: str
) -> None:
    ended(connection, old)

    def crash() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        interject(during, parent, crash)
        with pytest.raises(KeyboardInterrupt):
            expire(expires(old))
    assert not read_days(connection)[old].complete
    assert old in expire(expires(old)).dropped
    assert not exists(connection, old)
