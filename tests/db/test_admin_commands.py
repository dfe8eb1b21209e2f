"""Retry and cancel from the list and from a job's page: asked, confirmed, done once, told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from jobs import operator
from jobs.models import Job, OperatorAction
from jobs.newjob import NewJob
from jobs.states import JobState
from tests.db.test_admin_tools import (
    FAILED,
    JOBS,
    audit,
    command,
    messages_of,
    naming,
    operator_with,
    page_of,
)
from tests.factories import Connection, job_in, schedule

pytestmark = pytest.mark.django_db


def tick(client: Client, url: str, action: str, *jobs: Any) -> Any:
    return client.post(url, naming(*jobs, action=action, index="0"), follow=True)


def test_ticked_jobs_are_shown_first_and_nothing_happens_yet(
    admin_client: Client, connection: Connection
) -> None:
    job, other = job_in(JobState.FAILED, connection), job_in(JobState.FAILED, connection)
    response = tick(admin_client, JOBS, "retry_selected", job)
    assert "Retry this job" in response.text
    assert str(job.pk) in response.text
    assert str(other.pk) not in response.text
    assert job.state == JobState.FAILED
    assert audit() == []


@pytest.mark.parametrize("url", [JOBS, FAILED])
def test_a_confirmed_retry_is_done_told_and_recorded_once(
    admin_client: Client, connection: Connection, url: str
) -> None:
    jobs = [job_in(state, connection) for state in (JobState.FAILED, JobState.COMPLETED, JobState.RUNNING)]
    asked = tick(admin_client, url, "retry_selected", *jobs)
    assert asked.context["next"] == url
    response = admin_client.post(
        command("retry"), naming(*jobs, next=url, confirmed="1", reason="mended"), follow=True
    )
    assert response.redirect_chain == [(url, 302)]
    assert messages_of(response) == ["1 retried, 2 skipped (1 completed, 1 not ended)"]
    assert audit() == [("retry", 3, 1)]
    assert [job.state for job in jobs] == [JobState.QUEUED, JobState.COMPLETED, JobState.RUNNING]


@pytest.mark.parametrize("state", list(JobState))
@pytest.mark.parametrize("verb", ["retry", "cancel"])
def test_one_job_and_many_obey_the_same_rules(
    admin_client: Client, connection: Connection, verb: str, state: JobState
) -> None:
    """From the page of a job and from the list the same statement runs: the state under the lock decides."""
    alone, among = job_in(state, connection), job_in(state, connection)
    post = {"confirmed": "1", "reason": ""}
    one = messages_of(admin_client.post(command(verb), naming(alone, **post), follow=True))
    many = messages_of(admin_client.post(command(verb), naming(among, alone, **post), follow=True))
    assert alone.state == among.state
    assert one[0].split(",")[0] in ("1 retried", "0 retried", "1 cancelled", "0 cancelled")
    assert len(many) == 1


def test_a_second_operator_is_told_that_nothing_was_left_to_do(
    admin_client: Client, connection: Connection
) -> None:
    job = job_in(JobState.FAILED, connection)
    post = naming(job, confirmed="1")
    first = messages_of(admin_client.post(command("retry"), post, follow=True))
    second = messages_of(admin_client.post(command("retry"), post, follow=True))
    assert (first, second) == (["1 retried"], ["0 retried, 1 skipped (1 not ended)"])


@pytest.mark.parametrize(
    ("ids", "told"),
    [([], "No job was named."), (["zzz"], "not a list of job ids"), (["f" * 32], "not a list of job ids")],
)
def test_what_is_no_job_is_refused(admin_client: Client, ids: list[str], told: str) -> None:
    response = admin_client.post(command("cancel"), naming(*ids, confirmed="1"), follow=True)
    assert told in messages_of(response)[0]
    assert audit() == []


def test_more_than_a_hundred_are_refused(admin_client: Client) -> None:
    jobs = Job.objects.schedule_many([NewJob(job_type="test.noop", delay=timedelta(hours=1))] * 101)
    ids = [job_id for job_id, _ in jobs]
    for response in (
        tick(admin_client, JOBS, "cancel_selected", *ids),
        admin_client.post(command("cancel"), naming(*ids, confirmed="1"), follow=True),
    ):
        assert "at most 100" in messages_of(response)[0]
    assert audit() == []


def test_all_of_a_filter_cannot_be_selected(admin_client: Client) -> None:
    schedule(delay=timedelta(hours=1))
    job = schedule(delay=timedelta(hours=1))
    response = admin_client.post(JOBS, naming(job, action="cancel_selected", index="0", select_across="1"))
    assert response.context["ids"] == [job.pk]


def test_without_the_permission_it_is_refused_recorded_and_not_offered(connection: Connection) -> None:
    client, job = operator_with("view_job", "retry_job"), job_in(JobState.QUEUED, connection)
    page = client.get(JOBS).text
    assert "retry_selected" in page
    assert "cancel_selected" not in page
    assert "needs jobs.cancel_job" in client.get(page_of(job)).text
    assert tick(client, JOBS, "cancel_selected", job).status_code == 403
    assert client.post(command("cancel"), naming(job)).status_code == 403
    assert client.post(command("cancel"), naming(job, confirmed="1")).status_code == 403
    assert [action.skipped for action in OperatorAction.objects.all()] == [{"denied": 1}] * 3
    assert job.state == JobState.QUEUED


def test_a_job_that_is_gone_is_named_before_and_counted_after(admin_client: Client) -> None:
    job = schedule()
    gone = str(job.pk)[:-4] + "0000"
    assert gone in admin_client.post(command("cancel"), naming(job, gone)).text
    response = admin_client.post(command("cancel"), naming(job, gone, confirmed="1"), follow=True)
    assert messages_of(response) == ["1 cancelled, 1 skipped (1 not found)"]


def test_payloads_are_revealed_so_often_an_hour_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "REVEALS", 2)
    job, client, other = (
        schedule("test.echo", {"order": "order-4111"}),
        *(operator_with("view_job", "reveal_payload") for _ in range(2)),
    )
    asked = naming(job, reason="ticket", confirmed="1")
    for _ in range(2):
        assert "order-4111" in client.post(command("reveal"), asked).text
    response = client.post(command("reveal"), asked, follow=True)
    assert "Nothing was shown: you have looked at 2 payloads in the last hour" in messages_of(response)[0]
    assert "order-4111" not in response.text
    assert list(OperatorAction.objects.order_by("id").values_list("result", flat=True)) == [
        "done",
        "done",
        "failed",
    ]
    assert "order-4111" in other.post(command("reveal"), asked).text
    monkeypatch.setattr(operator, "REVEALS_IN", timedelta())
    assert "order-4111" in client.post(command("reveal"), asked).text
