"""The page of one job: where it is, what went wrong, and what it was given, the values only on demand."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from jobs import operator
from jobs.ids import new_id
from jobs.models import Attempt, OperatorAction
from jobs.states import JobState
from tests.db.test_admin_tools import (
    JOBS,
    command,
    messages_of,
    naming,
    operator_with,
    page_of,
    user_with,
)
from tests.factories import Connection, job_in, schedule

pytestmark = pytest.mark.django_db

SECRET = {"to": "ada@example.org", "api_key": "sk-12345", "headers": {"Authorization": "Bearer abcdef"}}


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (JobState.SCHEDULED, "Its timer waits for the due time."),
        (JobState.QUEUED, "It waits in its queue."),
        (JobState.RUNNING, "A worker has it."),
        (JobState.RETRYABLE, "1 of 20"),
        (JobState.COMPLETED, "It has ended: completed."),
        (JobState.FAILED, "ValueError: no"),
        (JobState.CANCELLED, "It has ended: cancelled."),
    ],
)
def test_each_state_says_where_the_job_is(
    admin_client: Client, connection: Connection, state: JobState, told: str
) -> None:
    page = admin_client.get(page_of(job_in(state, connection))).text
    assert told in page
    assert f"state-{state}" in page


@pytest.mark.parametrize(
    ("state", "verbs"),
    [
        (JobState.QUEUED, {"cancel", "reschedule", "prioritize", "move"}),
        (JobState.RUNNING, {"cancel"}),
        (JobState.FAILED, {"retry"}),
        (JobState.CANCELLED, {"retry"}),
        (JobState.COMPLETED, set()),
    ],
)
def test_only_what_fits_the_state_is_offered(
    admin_client: Client, connection: Connection, state: JobState, verbs: set[str]
) -> None:
    page = admin_client.get(page_of(job_in(state, connection)))
    assert {button.verb for button in page.context["buttons"]} == verbs


def test_who_cancelled_it_and_why_is_on_the_page(admin_client: Client) -> None:
    job, user = schedule(delay=timedelta(hours=1)), user_with("cancel_job")
    operator.act(user, "cancel", [job.pk], "recalled by marketing")
    page = admin_client.get(page_of(job)).text
    assert user.username in page
    assert "recalled by marketing" in page


def test_attempts_are_paged(admin_client: Client, connection: Connection) -> None:
    job = job_in(JobState.FAILED, connection)
    first = Attempt.objects.get()
    for number in range(2, 24):
        Attempt.objects.create(
            lease_token=new_id(job.due_at), job_id=job.pk, due_at=job.due_at, attempt=number,
            finished_at=first.finished_at, error_class="E", message="m",
        )  # fmt: skip
    shown = [
        [attempt.attempt for attempt in admin_client.get(page_of(job), {"attempts": n}).context["attempts"]]
        for n in ("1", "2", "3", "0", "-1", "x", "99999999")
    ]
    assert shown[:3] == [list(range(23, 13, -1)), list(range(13, 3, -1)), [3, 2, 1]]
    assert shown[3] == shown[4] == shown[5] == shown[6] == shown[0]


def test_the_payload_shows_keys_and_kinds_only(admin_client: Client) -> None:
    page = admin_client.get(page_of(schedule(payload=SECRET))).text
    assert "api_key" in page
    assert "text of 15" in page
    assert not any(value in page for value in ("ada@example.org", "sk-12345", "abcdef"))


def test_values_are_shown_for_a_reason_that_is_kept_and_never_those_of_secrets(admin_client: Client) -> None:
    job = schedule(payload=SECRET)
    asked = admin_client.post(command("reveal"), naming(job, confirmed="1", reason=" "))
    assert "This field is required." in asked.text
    assert "ada@example.org" not in asked.text
    page = admin_client.post(command("reveal"), naming(job, confirmed="1", reason="case 12")).text
    assert "ada@example.org" in page
    assert not any(value in page for value in ("sk-12345", "abcdef"))
    action = OperatorAction.objects.get()
    assert (action.verb, action.reason, action.target) == ("reveal", "case 12", {"jobs": [str(job.pk)]})


def test_values_are_not_shown_without_the_permission() -> None:
    client, job = operator_with("view_job"), schedule(payload=SECRET)
    assert "needs jobs.reveal_payload" in client.get(page_of(job)).text
    assert client.post(command("reveal"), naming(job, confirmed="1", reason="x")).status_code == 403
    assert OperatorAction.objects.get().skipped == {"denied": 1}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("zzz", "is no job id"),
        ("f" * 32, "is no job id"),
        ("01a2295a-1f30-7889-b549-969a9e17f19a", "kept 30 days"),
    ],
)
def test_a_job_that_is_not_there_leads_back_with_the_reason(
    admin_client: Client, name: str, told: str
) -> None:
    response = admin_client.get(page_of(name), follow=True)
    assert response.redirect_chain == [(JOBS, 302)]
    assert told in messages_of(response)[0]


def test_the_history_is_on_the_page_itself(admin_client: Client) -> None:
    job = schedule()
    assert admin_client.get(f"{JOBS}{job.pk}/history/")["Location"] == page_of(job)
